"""Rows join and leave between steps; every row pays for what it used."""

import pytest
import torch

from starr.api import Options, build_request
from starr.decode.batch import Batch, move_buffer
from starr.decode.engine import Engine
from tests.decode.rows import request
from tests.tiny import tiny_model


def test_rows_wait_for_places_and_keep_their_order():
    batch = Batch(tiny_model(), max_rows=2)
    ids = [batch.enqueue(request("_" * n)) for n in (3, 5, 2)]
    batch.admit()
    assert [row.id for row in batch.rows] == ids[:2]
    assert batch.canvas.columns == 7, "prompt, five masks and the spare column"
    batch.drop(ids[1])
    batch.admit()
    assert [row.id for row in batch.rows] == [ids[0], ids[2]]
    assert batch.canvas.columns == 5, "as narrow as the longest row that is left"
    assert not batch.waiting


def test_a_waiting_row_is_dropped_without_a_trace():
    batch = Batch(tiny_model(), max_rows=1)
    first, second = batch.enqueue(request("__")), batch.enqueue(request("__"))
    batch.drop(second)
    batch.admit()
    batch.drop(first)
    assert batch.rows == []
    assert batch.buffer is None


def test_only_buffered_rows_have_a_place_in_the_buffer():
    batch = Batch(tiny_model(), max_rows=4)
    ids = [batch.enqueue(request("____", cache=cache)) for cache in ("none", "dual", "dkv")]
    batch.admit()
    assert batch.buffered_ids() == ids[1:]
    assert batch.buffer.keys.shape[1] == 2
    assert [row.buffer_bytes > 0 for row in batch.rows] == [False, True, True]


@pytest.mark.parametrize(
    ("options", "forwards", "positions"),
    [
        ({}, 1, 1 + 8 + 12),
        ({"guidance": 1.0}, 2, 2 * (1 + 8 + 12)),
        ({"strategy": "wino"}, 1, 1 + 8 + 12 + 12),  # the shadow block
        ({"cache": "adaptive"}, 1, 1 + 8 + 12 + 6),  # one of two layers over the canvas
    ],
)
def test_the_first_step_costs_what_it_computed(options, forwards, positions):
    model = tiny_model()
    engine = Engine(model)
    engine.add(build_request(model, "a prompt", Options(max_tokens=12, eos="never", **options)))
    engine.step()
    (row,) = engine.batch.rows
    assert (row.forwards, row.positions) == (forwards, positions)
    assert row.full_forwards == forwards


def test_padding_is_counted_apart():
    model = tiny_model()
    engine = Engine(model)
    for prompt in ("ab", "a longer prompt"):
        engine.add(build_request(model, prompt, Options(max_tokens=8, cache="dual", eos="never")))
    engine.step()
    short, long = engine.batch.rows
    assert (short.padded, long.padded) == (long.length - short.length, 0)


NET = tiny_model().net


def test_rows_that_stay_keep_their_keys_and_new_ones_start_empty():
    first = move_buffer(NET, None, [], [4, 7], 5)
    first.keys.copy_(torch.randn(first.keys.shape))
    first.values.copy_(torch.randn(first.values.shape))
    wider = move_buffer(NET, first, [4, 7], [7, 9], 8)
    assert torch.equal(wider.keys[:, 0, :, :5], first.keys[:, 1])
    assert torch.equal(wider.values[:, 0, :, :5], first.values[:, 1])
    assert not wider.keys[:, 0, :, 5:].any()
    assert not wider.keys[:, 1].any()
    assert wider.slots == 8
    narrower = move_buffer(NET, wider, [7, 9], [7], 3)
    assert torch.equal(narrower.keys[:, 0], wider.keys[:, 0, :, :3])


def test_without_rows_there_is_no_buffer():
    assert move_buffer(NET, None, [], [], 5) is None
