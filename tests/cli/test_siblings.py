"""The other models of the package by name: their family's defaults, and the first one's words on what it knows."""

import json

import pytest

from tests.cli.test_known import TOM
from tests.packaged import each_packaged

DEFAULTS = {"bundled-dream": ("starr", "none"), "bundled-blocks": ("threshold:tau=0.85,origin=sdar", "exact")}

pytestmark = pytest.mark.parametrize("name", each_packaged(*DEFAULTS))


def test_run_decodes_with_the_familys_defaults(starr, name):
    made = json.loads(starr("run", TOM, "--model", name, "--max-tokens", 16, "--json", "--quiet").out)
    assert made["model"] == name
    assert (made["strategy"], made["cache"]) == DEFAULTS[name]


@pytest.mark.parametrize(("prompt", "told"), [("What is the capital of France?", True), (TOM, False)])
def test_a_strange_prompt_is_told(starr, name, prompt, told):
    result = starr("run", prompt, "--model", name, "--max-tokens", 16)
    assert (f"{name} knows only" in result.err) == told


def test_chat_says_that_it_answers_single_questions(starr, name, monkeypatch):
    lines = iter([TOM, "/history"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines, None) or (_ for _ in ()).throw(EOFError))
    result = starr("chat", "--model", name, "--max-tokens", 16)
    assert result.code == 0
    assert result.err.count(f"{name} knows single questions only") == 1


def test_race_eval_and_demo(starr, name, tmp_path):
    assert (
        starr("race", TOM, "--model", name, "--strategies", "threshold,starr", "--max-tokens", 8, "--quiet").code == 0
    )
    flags = ("--model", name, "--limit", 1, "--max-tokens", 8, "--out", tmp_path / "out", "--json", "--quiet")
    assert DEFAULTS[name][0] in starr("eval", "word-problems", *flags).out
    runs = json.loads(starr("demo", "--model", name, "--quiet", "--json").out)["runs"]
    assert [run["model"] for run in runs] == [name, name]


def test_it_is_listed_and_shown(starr, name):
    (row,) = [row for row in json.loads(starr("models", "--json").out) if row["name"] == name]
    assert row["here"]
    shown = json.loads(starr("models", "show", name, "--json").out)
    assert shown["family"] == row["family"]
