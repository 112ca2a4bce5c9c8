"""Extra queries: invisible to the row, blind to the token they are about, the same with a cache and without."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from starr.api import Options, build_request
from starr.decode.engine import Engine
from starr.decode.extras.queries import ShadowReader, build_shadows
from starr.decode.forward import forward
from tests.tiny import tiny_model


class Watching(ShadowReader):
    """A shadow for every position of the canvas of rows with an even seed."""

    @classmethod
    def serves(cls, request):
        return request.options.seed % 2 == 0

    def asks(self, canvas):
        mine = torch.zeros_like(canvas.masked[:, :1]).index_fill(0, self.rows, True)
        return canvas.valid & mine & (canvas.column_index >= canvas.rules.start[:, None])


def states_of(model, monkeypatch, caches, *, steps=0, seeds=(0, 1, 2), guests=(Watching,)):
    """Call and states of a forward over three ragged rows, after some steps; the model has them computed."""
    monkeypatch.setattr("starr.decode.batch.GUESTS", guests)
    engine = Engine(model)
    for prompt, seed, cache in zip(("ab", "a longer prompt", "abc"), seeds, caches, strict=True):
        given = Options(strategy="confidence", max_tokens=8, seed=seed, cache=cache, eos="never")
        engine.add(build_request(model, prompt, given))
    engine.batch.admit()
    with torch.inference_mode():
        for _ in range(steps):
            engine.step()
        call = engine.batch.call()
        return call, forward(model.net, model.spec, call)


@pytest.mark.parametrize("cache", ["none", "dual:refresh=1", "dkv:refresh=1"])
@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_the_rows_are_as_they_would_be_without_extra_queries(monkeypatch, cache, shift):
    model = tiny_model(shift=shift)
    call, found = states_of(model, monkeypatch, [cache] * 3, steps=2)
    plain, alone = states_of(model, monkeypatch, [cache] * 3, steps=2, guests=())
    assert torch.equal(call.canvas.tokens, plain.canvas.tokens)
    assert torch.allclose(found.observed, alone.observed, atol=1e-5)
    assert call.besides == ([16, 0, 16] if shift else [8, 0, 8])
    assert alone.extra is None


@pytest.mark.parametrize("cache", ["prefix:refresh=1", "dual:refresh=1", "dkv:refresh=1"])
@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_with_a_cache_that_refreshes_in_every_step_they_are_those_of_whole_forwards(monkeypatch, cache, shift):
    model = tiny_model(shift=shift)
    _, whole = states_of(model, monkeypatch, ["none"] * 3, steps=2)
    _, cached = states_of(model, monkeypatch, [cache] * 3, steps=2)
    _, mixed = states_of(model, monkeypatch, [cache, "none", "none"], steps=2)
    for row in (0, 2):
        assert torch.allclose(whole.extra[row], cached.extra[row], atol=1e-5)
        assert torch.allclose(whole.extra[row], mixed.extra[row], atol=1e-5)


def test_they_leave_nothing_in_the_buffer(monkeypatch):
    """A later forward over part of the row reads the same K/V with extra queries and without."""
    model = tiny_model()
    runs = [states_of(model, monkeypatch, ["dual"] * 3, steps=3, guests=guests) for guests in ((Watching,), ())]
    assert torch.allclose(runs[0][1].observed, runs[1][1].observed, atol=1e-5)
    (with_, without) = (call.buffer.keys[..., : call.canvas.columns - 1, :] for call, _ in runs)
    assert torch.allclose(with_, without, atol=1e-6)


@pytest.mark.parametrize("cache", ["none", "dual"])
@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_one_layer_gives_the_true_leave_one_out(monkeypatch, cache, shift):
    """By hand: the row with a mask in the token's place, and the state that predicts it."""
    model = tiny_model(shift=shift)
    model = replace(model, net=one_layer(model))
    call, found = states_of(model, monkeypatch, [cache] * 3, steps=3)
    for row in (0, 2):
        length = int(call.canvas.length[row])
        for place, column in enumerate(range(int(call.canvas.rules.start[row]), length)):
            tokens = call.canvas.tokens[row, :length].clone()
            tokens[column] = model.spec.mask_id
            true = model.net(tokens[None])[0, column - shift]
            assert torch.allclose(found.extra[row, place], true, atol=1e-5)


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
def test_shadows_do_not_see_each_other_unless_they_are_a_crowd(monkeypatch, shift):
    model = tiny_model(shift=shift)
    call, found = states_of(model, monkeypatch, ["none"] * 3, steps=3)
    column = int(call.canvas.rules.start[0]) + 2
    one = torch.zeros_like(call.plan.extra)
    one[0, column] = True
    plan = replace(call.plan, extra=one, figures=replace(call.plan.figures, extra=[1, 0, 0]))
    alone = replace(call, plan=plan, extra=None)
    settings = replace(call.settings, crowd=torch.tensor([True, False, False]))
    with torch.inference_mode():
        single = forward(model.net, model.spec, replace(alone, extra=build_shadows(alone, model.spec)))
        all_ = replace(call, settings=settings)
        crowd = forward(model.net, model.spec, replace(all_, extra=build_shadows(all_, model.spec)))
    assert torch.allclose(single.extra[0, 0], found.extra[0, 2], atol=1e-5)
    assert torch.allclose(crowd.extra[0], found.extra[0], atol=1e-4) == shift
    assert torch.allclose(crowd.extra[2], found.extra[2], atol=1e-5)


def one_layer(model):
    """The model's net with its first layer alone."""
    model.net.layers, model.net.shape = model.net.layers[:1], replace(model.net.shape, layers=1)
    return model.net


def test_the_head_tells_the_held_token_and_the_likeliest(monkeypatch):
    model = tiny_model()
    call, found = states_of(model, monkeypatch, ["none"] * 3, steps=3)
    told = Engine(model).leave_out(call, found)
    own, best = (value.view_as(call.extra.columns.index)[0] for value in (told.own, told.best))
    logits = model.net.head(found.extra[0]).float()
    logits[:, [model.spec.mask_id, *model.spec.eos_ids]] = -torch.inf  # the rows have eos=never
    probability = logits.softmax(1)
    held = call.canvas.tokens[0].gather(0, call.extra.columns.index[0])
    assert torch.allclose(own, probability.gather(1, held[:, None])[:, 0], atol=1e-4)
    assert torch.allclose(best, probability.max(1).values, atol=1e-4)
