from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.decode.noise import keys, uniform
from starr.decode.strategies.remdm import ETA, ReMDM
from starr.decode.view import STRATEGY_STREAM
from starr.errors import InputError
from tests.decode.strategies.driver import World, compare, play, steps_to_close, worlds
from tests.reference.ref_remdm import RefReMDM
from tests.tiny import tiny_model

VARIANTS = ("cap", "rescale", "conf", "loop")
ETAS = st.sampled_from([None, 0.0, 0.1, 0.5, 1.0])


@settings(deadline=None, max_examples=100)
@given(worlds(), st.sampled_from(VARIANTS), ETAS, st.sampled_from([None, 1, 5, 20]))
def test_equals_reference(world, variant, eta, steps):
    real = ETA.get(variant, 1.0) if eta is None else eta
    if variant == "loop":
        real = min(real, 0.1)  # above (1 - alpha) / alpha the chance to commit would exceed 1
        eta = None if eta is None else real
    compare(ReMDM(variant=variant, eta=eta, steps=steps), lambda: RefReMDM(variant, real, steps), world, steps=20)


@settings(deadline=None, max_examples=40)
@given(worlds(), st.sampled_from([(0.55, 0.05, 0.9), (0.9, 0.3, 0.5), (0.5, 0.5, 0.8)]))
def test_loop_phases_equal_reference(world, phases):
    t_on, t_off, alpha_on = phases
    strategy = ReMDM(variant="loop", eta=0.1, steps=24, t_on=t_on, t_off=t_off, alpha_on=alpha_on)
    compare(strategy, lambda: RefReMDM("loop", 0.1, 24, t_on, t_off, alpha_on), world, steps=26)


@pytest.mark.parametrize("variant", VARIANTS)
def test_ends_after_its_steps(variant):
    widths = [12, 7, 1]
    taken = steps_to_close(ReMDM(variant=variant), World(4, widths))
    assert all(count <= width for count, width in zip(taken, widths, strict=True))


@pytest.mark.parametrize("variant", ["cap", "rescale"])
def test_eta_zero_never_revokes(variant):
    assert not any((action == 2).any() for action in play(ReMDM(variant=variant, eta=0.0), World(4, [12, 12]), 40))


def test_large_eta_revokes():
    assert any((action == 2).any() for action in play(ReMDM(eta=1.0), World(4, [12, 12]), 40))


def test_loop_times_in_the_wrong_order_are_refused():
    with pytest.raises(InputError, match="t_off must be at most t_on"):
        ReMDM(variant="loop", t_on=0.2, t_off=0.3)


def test_a_forced_commit_is_the_position_with_the_least_noise():
    """The first of very many steps draws nothing; strictly, something must be committed."""
    given = {"strategy": "remdm:steps=4096", "enforce": "strict", "max_tokens": 8, "trace": True}
    run = starr.generate(tiny_model(), "a prompt", **given)
    first = run.trace.steps[0]
    assert not any(first.decided)
    noise = uniform(keys(torch.tensor([[0]]), torch.tensor([[0]]), torch.arange(8)[None], STRATEGY_STREAM))
    assert first.action.index(1) == int(noise.argmin())
