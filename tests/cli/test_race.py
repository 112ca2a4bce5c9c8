"""``starr race`` and the list of text forms it takes."""

import json

import pytest

from starr.cli.race import is_right, judge, split_forms
from starr.evals.tasks import word_problems


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("starr", ["starr"]),
        ("confidence, starr", ["confidence", "starr"]),
        ("starr:scale=5,responsive=false,threshold", ["starr:scale=5,responsive=false", "threshold"]),
        ("threshold:tau=0.8,starr:scale=2,spatial=false", ["threshold:tau=0.8", "starr:scale=2,spatial=false"]),
    ],
)
def test_commas_separate_forms_and_options(text, forms):
    assert split_forms(text) == forms


def test_all_is_every_strategy():
    import starr

    assert split_forms("all") == [entry.name for entry in starr.strategies()]


def test_one_table_sorted_by_forwards(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    forms = "confidence,confidence:steps=3,threshold:tau=0"
    result = run("race", "hello", "--strategies", forms)
    assert result.code == 0
    head, *lines = result.out.splitlines()
    assert head.split() == ["strategy", "forwards", "positions", "tokens/forward", "seconds", "revocations", "text"]
    order = [["threshold:tau=0.0", "1"], ["confidence:steps=3", "3"], ["confidence", "12"]]
    assert [line.split()[:2] for line in lines] == order
    body = json.loads(run("race", "hello", "--strategies", forms, "--json").out)
    assert [row["stats"]["forwards"] for row in body] == [1, 3, 12]


@pytest.mark.parametrize(("columns", "below"), [(80, True), (100, True), (140, False)])
def test_no_line_is_wider_than_the_terminal(run, monkeypatch, columns, below):
    """Where there is no room for the texts beside the figures, they stand below them."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run("race", "hello", "--strategies", "confidence:steps=3,threshold:tau=0", "--answer", "x").out.splitlines()
    assert max(map(len, lines)) <= columns
    assert [line for line in lines if line.startswith("threshold:tau=0.0: ✗ right")] == lines[-2:-1] * below
    assert ("text" in lines[0]) != below


def test_a_misspelt_strategy_is_named_before_the_model_is_loaded(starr):
    result = starr("race", "hello", "--strategies", "starr,threshhold", "--model", "/no/such/folder")
    assert result.code == 2
    assert "'threshhold'" in result.line
    assert "Did you mean 'threshold'?" in result.line


def test_all_leaves_out_what_a_cache_refuses_and_says_so(run):
    result = run("race", "hello", "--strategies", "all", "--cache", "dual", "--json")
    assert result.code == 0
    ran = {row["strategy"].partition(":")[0] for row in json.loads(result.out)}
    assert {"starr", "klass"} < ran
    assert not ran & {"wino", "daedal"}
    assert "Left out wino: Cache dual cannot be used: wino needs its shadow block" in result.err
    assert run("race", "hello", "--strategies", "wino", "--cache", "dual").code == 2


def test_all_leaves_out_what_smoothing_refuses_and_says_so(run):
    result = run("race", "hello", "--strategies", "all", "--smoothing", "1", "--max-tokens", "8", "--json")
    assert result.code == 0
    ran = {row["strategy"].partition(":")[0] for row in json.loads(result.out)}
    assert "starr" in ran
    assert "wino" not in ran
    assert "Left out wino: wino cannot be used with smoothing" in result.err


def test_nothing_to_race(run):
    assert "--strategies" in run("race", "hello", "--strategies", " , ").line


@pytest.mark.parametrize(
    ("text", "answer", "right"),
    [("3+4=7. #### 7", "7", True), ("#### 7", "7.0", True), ("#### 17", "7", False), ("It is Paris.", "paris", True)],
)
def test_numbers_are_compared_and_words_are_found(text, answer, right):
    assert is_right(text, answer) is right


def test_the_answer_marks_right_and_wrong(run, tmp_path, monkeypatch):
    page, lanes = tmp_path / "race.html", []
    monkeypatch.setattr("starr.viewer.html.build_page", lambda traces, title: lanes.extend(traces) or title)
    arguments = ("race", "hello", "--strategies", "confidence", "--answer", "no such words")
    assert "✗" in run(*arguments, "-o", page).out
    assert [(lane["answer"], lane["right"]) for lane in lanes] == [("no such words", False)]
    assert json.loads(run(*arguments, "--json").out)[0]["right"] is False
    assert "right" not in json.loads(run(*arguments[:4], "--json").out)[0]


def test_live_and_the_page(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    page = tmp_path / "race.html"
    forms = "confidence,threshold:tau=0,threshold:tau=0.1,starr,factor"
    result = run("race", "hello", "--strategies", forms, "--live", "-o", page)
    assert result.code == 0
    assert result.err.count("done") == 5
    assert "shows the 4 with the fewest forwards of 5" in result.err
    assert page.read_text().startswith("<!doctype html>")
    assert len(result.out.splitlines()) == 6


def test_a_packaged_problem_is_graded_right_formed_and_both():
    problem = word_problems.load()[0]
    assert judge(problem.prompt, problem.answer, None) == {"right": True, "formed": True, "both": True}
    mixed = f"So there has pens. {problem.answer}"
    assert judge(problem.prompt, mixed, None) == {"right": True, "formed": False, "both": False}
    assert judge("hello", problem.answer, None) == {}
