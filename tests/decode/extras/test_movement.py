"""How far values moved: nothing where nothing changed, something where a token did."""

import pytest
import torch

from starr.api import Options, build_request, run_all
from starr.decode.engine import Engine
from starr.decode.extras.movement import MOVED, Movement
from starr.decode.query import Wishes
from tests.tiny import tiny_model


def test_only_changed_surroundings_move_values():
    model = tiny_model()
    engine = Engine(model)
    engine.add(build_request(model, "a prompt", Options(max_tokens=8, cache="adaptive", eos="never")))
    engine.step()
    (guest,) = engine.batch.guests
    with torch.inference_mode():
        canvas = guest.plan(Wishes(engine.batch.canvas, engine.batch.buffer)).canvas
        start, end = int(canvas.rules.start), int(canvas.length)
        assert canvas.notes[MOVED][0, start:end].max() > 0, "the first step wrote a token"
        assert not canvas.notes[MOVED][0, :start].any(), "the prompt is not measured"
        again = guest.plan(Wishes(canvas)).canvas
        assert torch.equal(again.notes[MOVED], canvas.notes[MOVED]), "no buffer, nothing to compare with"


def test_a_step_costs_a_layer_over_the_canvas():
    model = tiny_model()
    row = build_request(model, "a prompt", Options(max_tokens=9, cache="adaptive"))
    engine = Engine(model)
    engine.add(row)
    engine.batch.admit()
    assert engine.batch.call().besides == [5], "nine positions in one of two layers"


def test_rows_of_other_caches_keep_their_values():
    """What smoothing adds to a mask is in the K/V of layer 0, which the tokens alone do not tell."""
    model = tiny_model()
    engine = Engine(model)
    for cache, smoothing in (("dkv-greedy", 2.0), ("adaptive", 0.0)):
        given = Options(max_tokens=8, cache=cache, smoothing=smoothing, eos="never")
        engine.add(build_request(model, "a prompt", given))
    engine.step()
    engine.step()
    kept = engine.batch.buffer
    before = [part[:, 0, :, :-1].clone() for part in (kept.keys, kept.values)]
    (guest,) = (guest for guest in engine.batch.guests if isinstance(guest, Movement))
    with torch.inference_mode():
        canvas = guest.plan(Wishes(engine.batch.canvas, kept)).canvas
    assert all(torch.equal(a, b[:, 0, :, :-1]) for a, b in zip(before, (kept.keys, kept.values), strict=True))
    assert canvas.notes[MOVED][1].any()
    assert not canvas.notes[MOVED][0, :-1].any()


@pytest.mark.parametrize("cache", ["dkv-greedy", "dual", "dkv"])
def test_rows_of_other_caches_do_not_pay(cache):
    model = tiny_model(sharpness=6.0)
    rows = [build_request(model, "ab", Options(max_tokens=16, cache=name)) for name in (cache, "adaptive")]
    alone = [run_all(model, [row], 1)[0] for row in rows]
    for found, expected in zip(run_all(model, rows, 2), alone, strict=True):
        assert (found.tokens, found.stats.positions) == (expected.tokens, expected.stats.positions)
