"""Trace files of format 1: written, read back, and refused when they are anything else."""

from __future__ import annotations

import copy
import json

import pytest

import starr
from starr.decode.trace import check_trace, read
from starr.errors import LoadError, WorkError
from tests.tiny import tiny_model
from tests.viewer.traces import make


@pytest.fixture(scope="module")
def trace():
    return starr.generate(tiny_model(), "a prompt", max_tokens=12, trace=True).trace


def test_a_trace_comes_back_as_it_was_written(trace, tmp_path):
    trace.save(tmp_path / "trace.json")
    body = read(tmp_path / "trace.json")
    assert body == json.loads(json.dumps(trace.to_dict()))
    assert body["version"] == 1
    assert len(body["steps"]) == trace.stats.forwards
    step = body["steps"][0]
    keys = {"step", "window", "queried", "tokens", "masked", "proposal", "best", "confidence", "threshold", "decided"}
    assert keys | {"action"} <= step.keys()


def test_a_trace_of_a_block_causal_run_comes_back_with_its_phases(tmp_path):
    run = starr.generate(tiny_model(block=8), "a prompt", max_tokens=12, trace=True)
    run.trace.save(tmp_path / "trace.json")
    again = starr.Trace.load(tmp_path / "trace.json")
    assert again.stats.prefill == run.stats.prefill
    assert again.stats.seal == run.stats.seal
    assert again.to_dict()["stats"] == run.trace.to_dict()["stats"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cut off or not JSON"),
        ("[]", "needs 'version' and 'steps'"),
        ('{"version": 2, "steps": []}', "trace format 2"),
        ('{"version": 1, "steps": [{"window": [0, 1]}]}', "a step lacks one of"),
    ],
)
def test_anything_else_is_one_line(text, reason, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(LoadError, match=reason):
        read(tmp_path / "x.json")
    with pytest.raises(LoadError, match="Cannot read"):
        read(tmp_path / "absent.json")


def test_a_folder_that_is_not_there_is_one_line(trace, tmp_path):
    with pytest.raises(WorkError, match="Cannot write the trace"):
        trace.save(tmp_path / "no" / "trace.json")


def broken(change):
    trace = copy.deepcopy(make(length=12))
    change(trace)
    return trace


def test_a_trace_passes_unchanged():
    trace = make(length=12)
    assert check_trace(copy.deepcopy(trace), "t") == trace


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.update(version=2), "format 2 is newer"),
        (lambda t: t.update(version="1"), "version '1'"),
        (lambda t: t.update(steps={}), "not a trace"),
        (lambda t: t.update(length=0), "'length' is 0"),
        (lambda t: t.update(length=10**9), "'length' is 1000000000"),
        (lambda t: t["steps"].append(7), "is not an object"),
        (lambda t: t["steps"][0].update(window=[0]), "'window' is [0]"),
        (lambda t: t["steps"][0].update(window=[0, 10**8]), "outside 0"),
        (lambda t: t["steps"][0]["confidence"].pop(), "'confidence' has 11 values for a window of 12"),
        (lambda t: t["steps"][1].pop("action"), "'action' has no values"),
        (lambda t: t["steps"][1].update(label=["x"] * 12), "'label' holds something that is not a number"),
        (lambda t: t["steps"][0]["proposal"].__setitem__(0, -4), "not a token id"),
        (lambda t: t["steps"][0]["proposal"].__setitem__(0, 2**40), "'proposal' holds"),
        (lambda t: t["steps"][0]["action"].__setitem__(0, 9), "outside 0 keep"),
        (lambda t: t["steps"][0].update(seconds="soon"), "'seconds' is 'soon'"),
        (lambda t: t.update(tokens=["<script>"]), "not a token id"),
        (lambda t: t["stats"].update(seal={"forwards": "many"}), "'stats' holds"),
        (lambda t: t["stats"].update(seal={"other": 1}), "'stats' holds"),
        (lambda t: t["stats"].update(tokens={"forwards": 1}), "'stats' holds"),
        (lambda t: t.update(pieces={"1": 5}), "not text"),
        (lambda t: t.update(prompt=[1]), "'prompt' is list"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(change, words):
    with pytest.raises(LoadError) as caught:
        check_trace(broken(change), "run.json")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("run.json: ")


@pytest.mark.parametrize("content", ['{"version": 1, "steps": [{"st', "hello", "[]", "", "\x00\xff", "{}"])
def test_files_that_are_cut_off_or_no_trace(tmp_path, content):
    path = tmp_path / "t.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(LoadError) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_traces_beyond_all_use_are_one_line_at_once(tmp_path):
    """60,000 steps took a minute to draw."""
    step = make(length=6, block=3)["steps"][0]
    with pytest.raises(LoadError, match="60000 steps; a trace may have at most 20000"):
        check_trace({"version": 1, "length": 6, "steps": [step] * 60_000}, "t")
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(2**29 + 1)  # a file of holes: no disk is used
    with pytest.raises(LoadError, match="has 536870913 bytes"):
        read(large)
