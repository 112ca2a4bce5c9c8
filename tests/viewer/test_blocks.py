"""Traces of block-causal rows say where their blocks begin, and the page gets it."""

import starr
from starr.viewer.pack import pack
from tests.tiny import tiny_model

OPTIONS = {"strategy": "threshold", "max_tokens": 11, "eos": "never", "trace": True}


def test_blocks_begin_at_multiples_from_position_0():
    trace = starr.generate(tiny_model(block=4), [5, 6, 7, 8, 9], cache="exact", **OPTIONS).trace
    assert trace.blocks == [0, 3, 7]
    assert pack(trace.to_dict())["blocks"] == [0, 3, 7]


def test_other_traces_have_none():
    body = starr.generate(tiny_model(), [5, 6], cache="none", **OPTIONS).trace.to_dict()
    assert "blocks" not in body
    assert pack(body)["blocks"] == []
