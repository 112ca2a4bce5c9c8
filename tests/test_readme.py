"""What the documentation shows, runs: every ``python`` and ``sh`` block; and what it names, exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list:
    found = [(page, text) for page in PAGES for kind, text in BLOCK.findall(page.read_text()) if kind == language]
    return [pytest.param(text, id=f"{page.stem}-{place}") for place, (page, text) in enumerate(found)]


PYTHON_PAGES = [page for page in PAGES if any(kind == "python" for kind, _ in BLOCK.findall(page.read_text()))]


@pytest.mark.parametrize("page", PYTHON_PAGES, ids=lambda page: page.stem)
def test_python_blocks_run(page, capsys, forget):
    """The blocks of a page one after another: each prints something, or holds a test, which is run."""
    known: dict = {}
    for kind, text in BLOCK.findall(page.read_text()):
        if kind != "python":
            continue
        before = set(known)
        exec(compile(text, page.stem, "exec"), known)
        tests = [name for name in known if name.startswith("test_") and name not in before]
        for name in tests:
            known[name]()
        assert tests or capsys.readouterr().out


@pytest.mark.parametrize("text", blocks("sh"))
def test_shell_blocks_run(text, tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    child = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_readme_opens_with_the_two_commands():
    first = re.search(r"```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make demo", "make test"]


def test_the_readme_names_every_verb():
    text = (ROOT / "README.md").read_text()
    command = [sys.executable, "-m", "starr.cli.main", "--help"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    verbs = re.findall(r"^  ([\w-]+) ", listing.split("Commands:")[1], re.MULTILINE)
    assert len(verbs) > 10
    assert not [verb for verb in verbs if f"`{verb}`" not in text]


def test_makefile_targets_of_the_readme_exist():
    targets = set(re.findall(r"make (\w+)", (ROOT / "README.md").read_text()))
    assert targets <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
