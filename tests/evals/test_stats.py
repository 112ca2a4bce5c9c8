"""Against published values, definitions and simulation."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from starr.evals.stats import aup, bootstrap, mcnemar, paired, pbx, percentile, sure, wilson


@pytest.mark.parametrize(("right", "n"), [(0, 10), (1, 10), (81, 263), (15, 148), (20, 20), (500, 1000)])
def test_wilson_equals_scipy(right, n):
    expected = reference.binomtest(right, n).proportion_ci(method="wilson")
    assert wilson(right, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_without_samples_knows_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 60), st.integers(0, 60))
@settings(deadline=None, max_examples=60)
def test_mcnemar_equals_the_binomial_test(first, second):
    total = first + second
    expected = reference.binomtest(first, total).pvalue if total else 1.0
    assert mcnemar(first, second) == pytest.approx(min(1.0, expected), rel=1e-9)


def test_paired_counts_and_sign():
    result = paired([True, True, False, True], [True, False, False, False])
    assert (result.only_first, result.only_second, result.n) == (2, 0, 4)
    assert result.difference == 0.5
    assert result.interval[0] < 0.5 < result.interval[1]
    mirrored = paired([True, False, False, False], [True, True, False, True])
    assert mirrored.difference == -0.5
    assert mirrored.interval == pytest.approx((-result.interval[1], -result.interval[0]))


def test_paired_interval_covers_the_truth_nineteen_times_in_twenty():
    rng = random.Random(0)
    shares, truth, hits = (0.5, 0.08, 0.03, 0.39), 0.05, 0
    for _ in range(2000):
        draws = rng.choices([(1, 1), (1, 0), (0, 1), (0, 0)], shares, k=100)
        low, high = paired([bool(a) for a, _ in draws], [bool(b) for _, b in draws]).interval
        hits += low <= truth <= high
    assert 0.93 <= hits / 2000 <= 0.98


def test_paired_refuses_different_samples():
    with pytest.raises(ValueError):
        paired([True], [])


def test_sure_needs_every_interval_narrow():
    narrow = paired([True] * 5000, [True] * 5000)
    wide = paired([True] * 50, [False] * 50)
    assert sure([narrow], 1.0)
    assert not sure([narrow, wide], 1.0)
    assert not sure([], 1.0)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=30), st.floats(0, 1))
@settings(deadline=None, max_examples=60)
def test_percentile_equals_numpy(values, share):
    import numpy as np

    assert percentile(values, share) == pytest.approx(float(np.percentile(values, share * 100)), abs=1e-9)


def test_the_bootstrap_of_a_mean_is_near_the_normal_interval_and_repeats():
    values = [float(i % 7) for i in range(700)]
    half = 1.959963984540054 * math.sqrt(4 / 700)
    assert bootstrap(values) == pytest.approx((3 - half, 3 + half), abs=0.03)
    assert bootstrap(values) == bootstrap(values)
    assert bootstrap([7.0]) == (7.0, 7.0)


def test_the_bootstrap_of_a_ratio_resamples_both_parts_together():
    assert bootstrap([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]) == pytest.approx((2.0, 2.0))


def test_pbx_is_the_largest_speed_with_the_score_between_points_too():
    points = [(1.0, 90.0), (2.0, 80.0), (4.0, 40.0)]
    assert pbx(points, 80) == 2.0
    assert pbx(points, 60) == pytest.approx(3.0)
    assert pbx(points, 85) == pytest.approx(1.5)
    assert pbx(points, 30) == 4.0
    assert pbx(points, 95) is None
    assert pbx([(1.0, 50.0), (2.0, 90.0)], 70) == 2.0, "the largest, not the first"
    assert pbx([], 10) is None


def test_aup_of_one_point_is_its_rectangle():
    assert aup([(2.0, 70.0)]) == pytest.approx(140.0)


def test_aup_without_loss_is_the_plain_area():
    assert aup([(1.0, 80.0), (3.0, 80.0), (5.0, 80.0)]) == pytest.approx(5 * 80.0)


def test_aup_weights_loss_and_drops_what_fell_too_far():
    def weight(y):
        return math.exp(-3 * (1 - y / 80))

    expected = 80 + (3 - 1) * (80 + 76 * weight(76)) / 2
    assert aup([(1.0, 80.0), (3.0, 76.0)]) == pytest.approx(expected)
    assert aup([(1.0, 80.0), (3.0, 76.0), (9.0, 74.0)]) == pytest.approx(expected)


def test_aup_order_does_not_matter_and_a_better_rival_lowers_it():
    points = [(1.0, 80.0), (3.0, 78.0), (4.0, 77.0)]
    areas = {round(aup(list(p)), 9) for p in itertools.permutations(points)}
    assert len(areas) == 1
    assert aup(points, best=90.0) < aup(points)
    assert aup([]) == 0.0
