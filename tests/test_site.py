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


def test_the_readme_is_short_and_its_table_is_the_stored_result():
    assert len(README.splitlines()) <= 200
    result = json.loads((ROOT / "docs" / "results" / "table1.json").read_text())
    assert readme_table.table(result) in README


def test_what_the_readme_says_of_the_fitted_rule_is_stored():
    """Forwards of the best peer over the rule's, of both models, and what is lost beyond doubt."""
    ratios, lost = {}, {}
    for path in (ROOT / "docs" / "results").glob("calibrated*.json"):
        body = json.loads(path.read_text())
        told = r"has (\S+) \(\S+ to (\S+)\) points and (\S+) x fewer forwards"
        points, high, ratio = map(float, re.search(told, body["notes"][-1]).groups())
        ratios.setdefault(body["task"], []).append(ratio)
        if high < 0:
            lost[path.stem] = points
    words, grids = ratios["word-problems"], {f"{ratio:.1f}" for ratio in ratios["grids"]}
    others = ratios["list-functions"] + ratios["lines"]
    text = " ".join(README.split())
    assert f"{min(words):.1f} to {max(words):.1f} times fewer forwards than the best peer on word problems" in text
    assert f"{min(others):.1f} to {max(others):.1f} times fewer on functions and lines" in text
    assert f"{' to '.join(sorted(grids))} times fewer on grids" in text
    assert lost == {"calibrated-lines-bundled-dream": -2.7}
    assert "on Dream's lines it loses 2.7 points, elsewhere nothing that 300 items can show" in text


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
    ("flag", "told"),
    [
        ("--gen-length", "That is --max-tokens here."),
        ("--gen_length", "That is --max-tokens here."),
        ("--cfg-scale", "That is --guidance here."),
        ("--dual-cache", "That is --cache dual here."),
        ("--threshold", "That is --strategy threshold:tau=X here."),
        ("--dllm-algorithm", "That is --strategy here."),
        ("--remasking", "That is --strategy confidence or random here."),
        ("--early_stop", "That is --stop-rule eos here."),
        ("--mask_id", "It is read from the checkpoint."),
        ("-n", "That is --max-tokens here."),
        ("--use_credit", "That is --strategy credit here."),
        ("--cont_weight", "That is --smoothing here."),
        ("--use_tp", "There is nothing like it here: a model runs on one device"),
        ("--prefix_look", "That is --cache vicinity:before=N here."),
        ("--after_look", "That is --cache vicinity:after=N here."),
        ("--warmup_times", "That is --cache vicinity:warmup=N here."),
        ("--alg", "That is --strategy confidence, margin or entropy here."),
        ("--alg_temp", "There is nothing like it here: temperature draws tokens, never positions."),
        ("--eps", "That is --strategy entropy:eps=X here."),
        ("--diffusion-eps", "That is --strategy confidence:schedule=dream,eps=X here."),
        ("--diffusion-alg-temp", "There is nothing like it here: temperature draws tokens, never positions."),
        ("--diffusion-steps", "That is --strategy confidence:steps=N here."),
        ("--diffusion-block-length", "That is --block-length here."),
        ("--tp-size", "There is nothing like it here: a model runs on one device"),
        ("--block-size", "That is --block-length here."),
    ],
)
def test_other_tools_names_as_flags_get_ours(flag, told, capsys):
    assert main(["run", "hi", flag, "1"]) == 2
    error = capsys.readouterr().err.strip()
    assert told in error
    assert "\n" not in error


def test_a_name_of_ours_is_not_foreign():
    assert ours("--strategy") == ""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gen_length", "That is max_tokens here."),
        ("steps", 'That is strategy="confidence:steps=N" here.'),
        ("alg", 'That is strategy="confidence", "margin" or "entropy" here.'),
        ("dual_cache", 'That is cache="dual" here.'),
        ("diffusion_visual", "That is starr.stream here."),
        ("use_tp", "There is nothing like it here: a model runs on one device, and Ray runs copies of it."),
    ],
)
def test_other_tools_names_as_keywords_get_ours(name, told):
    with pytest.raises(InputError) as caught:
        Options.of({name: 128})
    assert str(caught.value) == f"Unknown option {name!r}. {told}"
