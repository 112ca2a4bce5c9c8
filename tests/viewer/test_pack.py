"""Packing loses nothing but the fourth digit, and stays small."""

from __future__ import annotations

import base64
import gzip
import json
import re

import numpy as np

from starr.viewer.frames import MASKED, build_frames
from starr.viewer.pack import GRAIN, UNKNOWN, encode, pack, scale
from tests.viewer.traces import make


def summed(column, windows, length):
    """The inverse of ``delta``, cell by cell."""
    last, values = [0] * length, iter(column)
    steps = []
    for start, end in windows:
        for position in range(start, end):
            last[position] += next(values)
        steps.append(last[start:end])
    return steps


def test_columns_come_back():
    trace = make(length=24, block=8, cache="dual")
    lane = pack(trace)
    for step, found in zip(trace["steps"], summed(lane["cells"]["confidence"], lane["windows"], 24), strict=True):
        assert np.allclose(np.array(found) / GRAIN, step["confidence"], atol=0.5 / GRAIN + 1e-9)
    for step, found in zip(trace["steps"], summed(lane["cells"]["proposal"], lane["windows"], 24), strict=True):
        assert [lane["ids"][place] for place in found] == step["proposal"]
    rows = np.cumsum(np.array(lane["cells"]["canvas"]).reshape(-1, 24), axis=0)
    assert np.array_equal(np.array(lane["ids"])[rows], build_frames(trace))
    assert lane["ids"][0] == MASKED


def test_unknown_and_extreme_values():
    assert scale([None, float("nan"), 0.1234, 99.0, -99.0]).tolist() == [UNKNOWN, UNKNOWN, 123, 10000, -10000]


def test_no_threshold_and_no_label_cost_no_column():
    trace = make(length=8, threshold=False)
    for step in trace["steps"]:
        del step["label"]
    assert {"threshold", "label"}.isdisjoint(pack(trace)["cells"])


def test_encoded_text_is_inert_and_the_same_every_time():
    data = {"text": '</script><script>alert("x")</script>\ud800 שלום 😀'}
    text = encode(data)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", text)
    assert encode(data) == text
    assert json.loads(gzip.decompress(base64.b64decode(text)))["text"].startswith("</script>")


def test_256_positions_by_128_steps_add_at_most_200_kilobytes():
    trace = make(length=256, pace=2)
    trace["steps"] = trace["steps"][:128]
    assert len(trace["steps"]) == 128
    assert len(encode({"lanes": [pack(trace)]})) <= 200_000  # although every number here is noise
