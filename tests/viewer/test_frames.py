"""Frames hold the canvas after every step, whatever the steps propose."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.viewer.frames import MASKED, build_curves, build_frames
from tests.viewer.traces import MASK, apply, make


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 999), length=st.integers(1, 40), block=st.sampled_from([None, 3, 8]), pace=st.integers(1, 6))
def test_frames_follow_the_actions(seed, length, block, pace):
    trace = make(seed=seed, length=length, block=block, pace=pace)
    canvas, rows = [MASK] * length, build_frames(trace)
    for step, row in zip([*trace["steps"], None], rows, strict=True):
        assert [MASK if token == MASKED else token for token in row] == canvas
        if step is not None:
            apply(canvas, step)
    assert canvas == trace["tokens"]


def test_without_final_tokens_the_actions_give_them():
    trace = make(length=20, block=8)
    without = {key: value for key, value in trace.items() if key != "tokens"}
    assert np.array_equal(build_frames(without), build_frames(trace))


def test_what_was_written_wins_over_what_was_proposed():
    trace = copy.deepcopy(make(length=12))
    for step in trace["steps"]:
        step["proposal"] = [3] * 12
    assert build_frames(trace)[-1].tolist() == trace["tokens"]


def test_blocks_that_were_never_reached_are_masked_until_the_end():
    trace = make(length=24, block=8)
    trace["steps"] = [step for step in trace["steps"] if step["window"][0] == 0]
    found = build_frames(trace)
    assert (found[:-1, 8:] == MASKED).all()
    assert found[-1].tolist() == trace["tokens"]
    assert build_curves(trace, found).masks[0] == 24


def test_a_trace_without_steps_is_its_final_tokens():
    trace = make(length=5) | {"steps": []}
    assert build_frames(trace).shape == (1, 5)
    assert build_curves(trace, build_frames(trace)).masks == [0]


def test_curves_count_what_the_steps_did():
    trace = make(length=32, block=16, cache="dual")
    found, steps = build_curves(trace, build_frames(trace)), trace["steps"]
    assert found.masks[0] == 32
    assert found.masks[-1] == 0
    gained = np.array(found.commits) - np.array(found.revocations)
    assert (-np.diff(found.masks)).tolist() == gained.tolist()
    assert found.revocations == [step["action"].count(2) for step in steps]
    assert found.positions[-1] == sum(step["positions"] for step in steps)
    assert found.forwards == list(range(len(steps) + 1))
    waiting = [c for c, m in zip(steps[0]["confidence"], steps[0]["masked"], strict=True) if m]
    assert found.least[0] == pytest.approx(min(waiting), abs=1e-3)
    assert found.high[0] == pytest.approx(max(steps[0]["threshold"]), abs=1e-3)
    assert found.milliseconds[-1] == pytest.approx(1000 * steps[-1]["seconds"], abs=0.01)


def test_steps_of_several_forwards_share_the_total():
    trace = make(length=8)
    trace["stats"]["forwards"] = 2 * len(trace["steps"])
    assert build_curves(trace, build_frames(trace)).forwards[-1] == 2 * len(trace["steps"])
