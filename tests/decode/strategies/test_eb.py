"""EB-Sampler against its slow transcription, and its two ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.eb import EntropyBound
from tests.decode.strategies.driver import World, compare, play, run, worlds
from tests.reference.ref_eb import RefEntropyBound

OPTIONS = st.fixed_dictionaries(
    {
        "gamma": st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.5, 1e6]),
        "unit": st.sampled_from(["nats", "bits"]),
        "order": st.sampled_from(["entropy", "confidence"]),
    }
)


@settings(deadline=None, max_examples=60)
@given(worlds(), OPTIONS)
def test_equals_the_slow_transcription(world, options):
    compare(EntropyBound(**options), lambda: RefEntropyBound(**options), world)


def test_without_a_bound_everything_is_committed_at_once():
    world = World(1, [9, 4])
    masked = world.masked
    assert play(EntropyBound(gamma=1e6), world, 1)[0].bool().equal(masked)


@settings(deadline=None, max_examples=30)
@given(worlds())
def test_gamma_zero_commits_one_plus_what_costs_nothing(world):
    for view, decision in run(EntropyBound(gamma=0.0), world):
        free = (view.masked & (view.entropy == 0)).sum(1)
        masks = view.masked.sum(1)
        assert decision.action.sum(1).equal((free + 1).minimum(masks))
