"""SlowFast Sampling against its slow transcription, and the advance of its spans."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.slowfast import SlowFast
from tests.decode.strategies.driver import World, carried, closes_in_time, compare, worlds
from tests.reference.ref_slowfast import RefSlowFast

OPTIONS = st.fixed_dictionaries(
    {
        "explore": st.integers(1, 4),
        "tau_reach": st.integers(4, 17).map(lambda n: n / 16),
        "spread": st.sampled_from([0.0, 0.5, 1.0, 2.0]),
        "tau_slow": st.integers(8, 17).map(lambda n: n / 16),
        "tau_fast": st.integers(8, 17).map(lambda n: n / 16),
    }
)


@settings(deadline=None, max_examples=80)
@given(worlds(), OPTIONS)
def test_equals_the_slow_transcription(world, options):
    compare(SlowFast(**options), lambda: RefSlowFast(**options), world, steps=16)


@settings(deadline=None, max_examples=40)
@given(worlds(), OPTIONS)
def test_spans_advance_and_stay_inside(world, options):
    strategy, carry = SlowFast(**options), None
    for _ in range(16):
        view = world.view()
        before = carried(strategy, view, carry)
        decision, carry = strategy.decide(view, before)
        moved = carry["start"] != before["start"]
        assert bool((carry["start"] >= before["start"]).all())
        assert torch.equal(carry["start"][moved], before["end"][moved])
        assert bool((carry["end"] > carry["start"]).all())
        assert bool((carry["end"] <= view.width).all())
        assert bool((decision.action.sum(1) >= 1).all())
        world.apply(decision, view)


@settings(deadline=None, max_examples=30)
@given(worlds(), OPTIONS)
def test_a_window_closes_within_its_width(world, options):
    assert closes_in_time(SlowFast(**options), world)


def test_two_estimates_fix_the_span_only_if_their_deviation_is_below_the_spread():
    world = World(0, [8])
    world.frozen = torch.tensor([[False] * 8 + [True]])
    world.masked = ~world.frozen
    reach = torch.tensor([[0.5] * 6 + [0.0] * 3])  # the estimate is 6
    view = replace(world.view(), confidence=reach)
    for before, end, fixed in ((5, 6, True), (4, 5, False), (0, 6, False)):
        state = {**SlowFast().begin(view), "estimate": torch.tensor([before])}
        found = SlowFast().explored(view, state)
        assert (int(found["end"]), bool(found["fixed"])) == (end, fixed)
