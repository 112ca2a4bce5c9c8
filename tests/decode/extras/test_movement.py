"""How far values moved: nothing where nothing changed, something where a token did."""

import torch

from starr.api import Options, request_of
from starr.decode.engine import Engine
from starr.decode.extras.movement import MOVED
from tests.tiny import tiny_model


def test_only_changed_surroundings_move_values():
    model = tiny_model()
    engine = Engine(model)
    engine.add(request_of(model, "a prompt", Options(max_tokens=8, cache="adaptive", eos="never")))
    engine.step()
    (guest,) = engine.batch.guests.present
    with torch.inference_mode():
        canvas = guest.measure(engine.batch.canvas, engine.batch.buffer)
        start, end = int(canvas.start), int(canvas.length)
        assert canvas.notes[MOVED][0, start:end].max() > 0, "the first step wrote a token"
        assert not canvas.notes[MOVED][0, :start].any(), "the prompt is not measured"
        assert guest.measure(canvas, None) is canvas, "no buffer, nothing to compare with"


def test_a_step_costs_a_layer_over_the_canvas():
    model = tiny_model()
    row = request_of(model, "a prompt", Options(max_tokens=9, cache="adaptive"))
    engine = Engine(model)
    engine.add(row)
    engine.batch.admit()
    assert engine.batch.guests.positions(0, len(row.tokens), 9) == 5, "nine positions in one of two layers"
