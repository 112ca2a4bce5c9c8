"""Kinds of forwards: whole, over queried positions, with guidance; all give the states of the same positions."""

import pytest
import torch

from starr.api import Options, build_request
from starr.decode.canvas import columns_where
from starr.decode.engine import Engine
from starr.decode.forward import forward, slots_of, together
from tests.tiny import tiny_model


def states(shift: bool, **options):
    """States of the first step of two ragged rows."""
    model = tiny_model(shift=shift)
    engine = Engine(model)
    for prompt in ("a prompt", "another, longer prompt"):
        engine.add(build_request(model, prompt, Options(max_tokens=9, strategy="threshold", **options)))
    engine.batch.admit()
    call = engine.batch.call()
    with torch.inference_mode():
        return call, forward(model.net, model.spec, call), model


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_a_forward_over_all_positions_is_the_whole_forward(shift):
    _, plain, _ = states(shift)
    _, cached, _ = states(shift, cache="dual")
    assert torch.allclose(plain.observed, cached.observed, atol=1e-5)


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_states_are_those_of_each_row_alone(shift):
    call, found, model = states(shift)
    rows, observed = call.observed.index.shape
    for row in range(rows):
        length = int(call.canvas.length[row])
        alone = model.net(call.canvas.tokens[row : row + 1, :length])[0]
        wanted = call.observed.index[row] - int(shift)
        assert torch.allclose(found.observed.view(rows, observed, -1)[row], alone[wanted], atol=1e-5)


def test_guidance_runs_a_second_canvas_without_the_prompt():
    _, plain, _ = states(False)
    _, guided, _ = states(False, guidance=1.0)
    assert plain.unguided is None
    assert torch.allclose(plain.observed, guided.observed, atol=1e-6)
    assert not torch.allclose(guided.unguided, guided.observed, atol=1e-2)


def test_slots_and_rows_come_back_in_place():
    where = columns_where(torch.tensor([[False, True, True, False]]), 2)
    assert slots_of(where, 4)[0, 1:3].tolist() == [0, 1]
    parts = [(torch.tensor([1]), torch.ones(1, 2, 3)), (torch.tensor([0]), torch.zeros(1, 2, 3))]
    assert together(parts, 2, 2)[:, 0, 0].tolist() == [0, 1]
