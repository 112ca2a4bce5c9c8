"""The documentation site builds without a warning, and README, citation and package say the same."""

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import starr
from docs import about_results, readme_table
from starr.cli.main import main
from starr.errors import InputError
from starr.options import FLAG, FOREIGN, NEEDLESS, Options, ours

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_site_builds_strictly_as_make_docs_does(tmp_path):
    assert "mkdocs build --strict" in (ROOT / "Makefile").read_text()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    for page in (
        "guide",
        "strategies",
        "server",
        "evaluation",
        "extend",
        "calibration",
        "scale",
        "migrate",
        "api",
        "results",
    ):
        assert (tmp_path / page / "index.html").exists(), page
    reference = (tmp_path / "api" / "index.html").read_text()
    assert all(f'id="starr.api.{name}"' in reference for name in ("generate", "stream", "infill"))
    assert "fonts.googleapis" not in reference


def test_the_readmes_tables_are_the_stored_result_and_the_registered_strategies():
    result = json.loads((ROOT / "docs" / "results" / "table1.json").read_text())
    assert readme_table.table(result) in README
    assert readme_table.strategies_table() in README


def test_what_the_results_say_together_is_written_from_them():
    folder = ROOT / "docs" / "results"
    assert about_results.about(folder) == (folder / "about.md").read_text(encoding="utf8")


def test_the_readme_names_every_model_and_task_and_who_is_ahead():
    row = {"run": "confidence", "both %": 90.0, "forwards": 128.0}
    rows = [
        {"model": model, "task": task, **row, "run": run, "both %": both}
        for model in ("bundled", "bundled-dream")
        for task in ("word-problems", "lines")
        for run, both in (("confidence", 90.0), ("threshold", 80.0), ("starr", 61.5))
    ]
    told = readme_table.table({"rows": rows, "task": "", "command": "c", "machine": "m", "date": "d"})
    assert "| bundled-dream | lines | 90.0 (128.0) | 80.0 (128.0) | 61.5 (128.0) |" in told
    assert "word-problems, bundled: -18.5, +0.0" in told
    assert told.splitlines()[0] == readme_table.BEGIN
    assert told.splitlines()[-1] == readme_table.END


def test_the_readmes_links_are_absolute_and_lead_into_this_tree():
    home = PROJECT["urls"]["Repository"]
    raw = home.replace("github.com", "raw.githubusercontent.com") + "/main/"
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert all(target.startswith("https://") for target in targets)
    inside = [re.sub(rf"^{home}/(?:blob|tree)/main/|^{raw}", "", target) for target in targets if "starr-dlm" in target]
    assert len(inside) >= 6
    assert all((ROOT / target).exists() for target in inside)


def test_the_citation_names_the_paper_and_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"version: {PROJECT['version']}" in text
    assert "2601.04205" in text


def test_every_option_of_the_table_stands_on_the_page_for_migrants():
    page = (ROOT / "docs" / "migrate.md").read_text(encoding="utf8").replace("-", "_")
    assert not [name for name in (*FOREIGN, *NEEDLESS) if name.replace("-", "_") not in page]


def test_every_form_that_migrants_are_told_is_one():
    """``confidence:steps=N`` with a number in place of its letter is a strategy."""
    makers = {"strategy": starr.strategy, "cache": starr.cache}
    for told in set(FOREIGN.values()) - {"strategy name:option=value"}:
        option, _, value = told.partition(" ")
        for form in re.split(r", | or ", value) if option in makers and value else ():
            makers[option](re.sub(r"=[NX]$", lambda letter: "=4" if letter[0] == "=N" else "=0.5", form))


def test_every_name_on_the_page_for_migrants_is_answered():
    """The first column's words, as flags: ours, or told what is ours, or that nobody has to say it."""
    page = (ROOT / "docs" / "migrate.md").read_text(encoding="utf8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    names = {name.replace("-", "_") for cell in cells for name in re.findall(r"(?:`|`--| --)([a-z][\w-]+)", cell)}
    own = {field.name for field in dataclasses.fields(Options)} | {"served_model_name"}
    assert {"gen_length", "alg", "factor", "dual_cache", "low_threshold", "model_path", "temp"} <= names
    assert not [name for name in names - own if not ours(f"--{name}", FLAG)]


@pytest.mark.parametrize(
    ("flag", "own"),
    [
        ("--gen-length", "--max-tokens"),
        ("--gen_length", "--max-tokens"),
        ("--cfg-scale", "--guidance"),
        ("--dual-cache", "--cache dual"),
        ("--threshold", "--strategy threshold:tau=X"),
        ("--dllm-algorithm", "--strategy"),
        ("--remasking", "--strategy confidence or random"),
        ("--early_stop", "--stop-rule eos"),
        ("--mask_id", "checkpoint"),
        ("-n", "--max-tokens"),
        ("--use_credit", "--strategy credit"),
        ("--cont_weight", "--smoothing"),
        ("--use_tp", "one device"),
        ("--prefix_look", "--cache vicinity:before=N"),
        ("--after_look", "--cache vicinity:after=N"),
        ("--warmup_times", "--cache vicinity:warmup=N"),
        ("--alg", "--strategy confidence, margin or entropy"),
        ("--alg_temp", "temperature"),
        ("--eps", "--strategy entropy:eps=X"),
        ("--diffusion-eps", "--strategy confidence:schedule=dream,eps=X"),
        ("--diffusion-alg-temp", "temperature"),
        ("--diffusion-steps", "--strategy confidence:steps=N"),
        ("--diffusion-block-length", "--block-length"),
        ("--tp-size", "one device"),
        ("--block-size", "--block-length"),
    ],
)
def test_other_tools_names_as_flags_get_ours(flag, own, capsys):
    assert main(["run", "hi", flag, "1"]) == 2
    error = capsys.readouterr().err.strip()
    assert own in error.partition(flag)[2]
    assert "\n" not in error


def test_a_name_of_ours_is_not_foreign():
    assert ours("--strategy") == ""


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("gen_length", "max_tokens"),
        ("steps", 'strategy="confidence:steps=N"'),
        ("alg", 'strategy="confidence", "margin" or "entropy"'),
        ("dual_cache", 'cache="dual"'),
        ("diffusion_visual", "starr.stream"),
        ("use_tp", "one device"),
    ],
)
def test_other_tools_names_as_keywords_get_ours(name, own):
    with pytest.raises(InputError) as caught:
        Options.of({name: 128})
    assert own in str(caught.value).partition(repr(name))[2]
