"""Trace files of format 1: written, read back, and refused when they are anything else."""

import json

import pytest

import starr
from starr.decode.trace import read
from starr.errors import LoadError, WorkError
from tests.tiny import tiny_model


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
