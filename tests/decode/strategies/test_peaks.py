from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.peaks import Peaks, peaks_of
from starr.decode.strategies.threshold import Threshold
from starr.errors import InputError
from tests.decode.strategies.driver import World, compare, play, same, worlds
from tests.decode.strategies.stateless import Stateless
from tests.reference.ref_peaks import peaks

BARS = st.sampled_from([0.0, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0, 1.5])


@settings(deadline=None, max_examples=60)
@given(worlds(), BARS, BARS, st.integers(0, 14))
def test_equals_reference(world, a, b, radius):
    options = {"high": max(a, b), "low": min(a, b), "radius": radius}
    compare(Peaks(**options), lambda: Stateless(peaks, **options), world)


@pytest.mark.parametrize("seed", range(5))
def test_low_equal_to_high_is_the_threshold(seed):
    widths = [12, 3, 8]
    assert same(play(Peaks(low=0.9), World(seed, widths)), play(Threshold(), World(seed, widths)))


def test_radius_zero_makes_every_mask_a_peak():
    widths = [12, 3, 8]
    assert same(play(Peaks(radius=0), World(3, widths)), play(Threshold(tau=0.5), World(3, widths)))


def test_a_plateau_has_one_peak_per_reach():
    level, masked = torch.full((1, 9), 0.6), torch.ones(1, 9, dtype=torch.bool)
    assert peaks_of(level, masked, 2).tolist() == [[True] + [False] * 8]


def test_isolated_peaks_are_committed_together():
    score = torch.tensor([[0.6, 0.2, 0.1, 0.1, 0.2, 0.55, 0.3]])
    assert peaks_of(score, torch.ones_like(score, dtype=torch.bool), 2).nonzero()[:, 1].tolist() == [0, 5]


def test_low_above_high_is_refused():
    with pytest.raises(InputError, match="low must be at most high"):
        Peaks(high=0.5, low=0.6)
