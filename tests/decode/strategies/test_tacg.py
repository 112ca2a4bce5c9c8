"""TACG against its slow transcription, and its bounds."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.tacg import Tacg
from starr.decode.strategies.threshold import Threshold
from tests.decode.strategies.driver import World, compare, play, run, same, worlds
from tests.reference.ref_tacg import RefTacg

BAR = st.integers(2, 17).map(lambda n: n / 16)
OPTIONS = st.fixed_dictionaries(
    {
        "tau": BAR,
        "floor": BAR,
        "extra": st.integers(0, 3),
        "share": st.sampled_from([0.0, 0.25, 1.0]),
        "decay": st.sampled_from([0.0, 0.5, 0.95, 1.0]),
        "weight": st.sampled_from([0.0, 0.3, 2.0]),
        "rerank": st.sampled_from([0.0, 0.05, 2.0]),
        "steps": st.integers(1, 4),
        "escape": BAR,
        "fallback": st.integers(1, 3),
    }
)


@settings(deadline=None, max_examples=100)
@given(worlds(), OPTIONS)
def test_equals_the_slow_transcription(world, options):
    compare(Tacg(**options), lambda: RefTacg(**options), world)


@settings(deadline=None, max_examples=30)
@given(worlds(), st.integers(0, 3))
def test_near_misses_stay_within_their_budget(world, extra):
    strategy = Tacg(tau=0.75, floor=0.25, extra=extra, share=0.25, steps=1)
    for view, decision in run(strategy, world):
        above = (view.masked & (view.confidence > 0.75)).sum(1)
        budget = (above.clamp(min=1) / 4).ceil().clamp(max=extra)
        assert bool((decision.action.sum(1) <= (above + budget).clamp(min=1)).all())
        assert bool((decision.action.sum(1) >= 1).all())


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_without_extras_gate_and_rerank_it_is_a_threshold(seed, widths):
    plain = Tacg(tau=0.7, extra=0, steps=1, rerank=0.0)
    first, second = (World(seed, widths) for _ in range(2))
    assert same(play(plain, first), play(Threshold(tau=0.7), second)), "0.7 is no multiple of 1/16, so > is >="


def test_the_mask_id_at_minus_infinity_gives_no_nan():
    world = World(5, [4])
    strategy, carry = Tacg(), None
    for _ in range(3):
        view = world.view()
        _, carry = strategy.decide(view, carry or strategy.begin(view))
        assert bool(torch.isfinite(carry["average"]).all())


def test_a_token_that_guidance_speaks_against_loses_nothing():
    world = World(0, [2])
    world.frozen = torch.tensor([[False, False, True]])
    world.masked = ~world.frozen
    now, past = torch.zeros(1, 3, 7), torch.zeros(1, 3, 7)
    now[0, :, 3] = 2.0
    past[0, 0, 3] = 9.0  # position 0 was surer before: its guided probability is below the average's
    past[0, 1, 3] = 2.0
    view = replace(
        world.view(),
        proposal=torch.full((1, 3), 3),
        confidence=torch.tensor([[0.875, 0.8125, 0.0]]),
        distribution=now,
    )
    strategy = Tacg(rerank=2.0, extra=1)
    decision, _ = strategy.decide(view, {**strategy.begin(view), "average": past})
    assert decision.action[0].tolist() == [1, 0, 0]
