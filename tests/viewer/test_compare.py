"""Where two runs part."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from starr.viewer.compare import compare_lanes, compare_texts, find_parting
from tests.viewer.traces import make


def test_the_same_run_never_parts():
    found = compare_lanes([make(), make()])
    assert found == [{"a": 0, "b": 1, "parting": None, "text": [("same", make()["text"])]}]


def test_the_first_frame_that_differs():
    a = [[None, None], ["x", None], ["x", "y"]]
    b = [[None, None], ["x", None], ["x", "z"], ["w", "z"]]
    assert find_parting(a, b) == {"step": 2, "count": 1, "cells": [[1, "y", "z"]]}


def test_a_lane_that_is_done_keeps_its_last_frame_and_shorter_canvases_count_as_masked():
    assert find_parting([["x"]], [["x"], ["x"]]) is None
    assert find_parting([["x"]], [["x", "y"]]) == {"step": 0, "count": 1, "cells": [[1, None, "y"]]}


def test_every_pair_of_four_lanes():
    pairs = compare_lanes([make(seed=seed) for seed in range(4)])
    assert [(pair["a"], pair["b"]) for pair in pairs] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


@settings(deadline=None, max_examples=50)
@given(a=st.text(max_size=60), b=st.text(max_size=60))
def test_the_runs_give_both_texts_back(a, b):
    runs = compare_texts({"text": a}, {"text": b})
    assert "".join(words for side, words in runs if side != "second") == a
    assert "".join(words for side, words in runs if side != "first") == b
