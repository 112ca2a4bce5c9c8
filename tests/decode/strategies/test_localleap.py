from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.localleap import LocalLeap
from starr.decode.strategies.threshold import Threshold
from starr.errors import InputError
from tests.decode.strategies.driver import World, compare, play, same, worlds
from tests.decode.strategies.stateless import Stateless
from tests.reference.ref_localleap import localleap

BARS = st.sampled_from([0.0, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0, 1.5])


@settings(deadline=None, max_examples=60)
@given(worlds(), BARS, BARS, st.integers(0, 14))
def test_equals_reference(world, a, b, radius):
    options = {"tau": max(a, b), "relaxed": min(a, b), "radius": radius}
    compare(LocalLeap(**options), lambda: Stateless(localleap, **options), world)


@pytest.mark.parametrize("options", [{"radius": 0}, {"relaxed": 0.9}])
@pytest.mark.parametrize("seed", range(5))
def test_without_relaxation_it_is_the_threshold(seed, options):
    widths = [12, 3, 8]
    assert same(play(LocalLeap(**options), World(seed, widths)), play(Threshold(), World(seed, widths)))


def test_relaxation_commits_more():
    widths = [40, 40]
    first = play(LocalLeap(relaxed=0.3), World(1, widths), steps=1)[0]
    assert (first == 1).sum() > (play(Threshold(), World(1, widths), steps=1)[0] == 1).sum()


def test_relaxed_above_tau_is_refused():
    with pytest.raises(InputError, match="relaxed must be at most tau"):
        LocalLeap(tau=0.5, relaxed=0.6)
