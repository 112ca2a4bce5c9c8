"""Fast-dLLM++'s Fréchet profile: the paper's own vector, its closed form at equal confidences, and a slow reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.factor import Factor
from starr.decode.strategies.profile import Profile
from tests.decode.strategies.driver import compare, worlds
from tests.decode.strategies.views import chosen, one_row
from tests.reference.ref_profile import RefProfile

DELTAS = [0.0, 0.125, 0.25, 0.5, 1.0]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(DELTAS), worlds())
def test_profile_is_its_transcription(delta, world):
    compare(Profile(delta=delta), lambda: RefProfile(delta), world)


def test_the_vector_of_the_paper():
    view = one_row([0.97, 0.6, 0.99, 0.8, 0.9])  # sorted, G_n = .98 .93 .76 .46 -.14
    assert chosen(Profile(), view) == [0, 2, 3, 4]
    assert chosen(Profile(delta=0.5), view) == [0, 2, 4]
    assert chosen(Profile(delta=0.95), view) == [2]
    assert chosen(Profile(delta=0.99), view) == [2], "the surest is always committed"


@pytest.mark.parametrize(("error", "count"), [(1 / 8, 4), (1 / 16, 10), (1 / 4, 1)])
def test_equality_is_refused(error, count):
    """With delta 0.25 and equal errors, rank n passes where (n + 1) error < 0.75, strictly."""
    view = one_row([1 - error] * 16)
    assert len(chosen(Profile(delta=0.25), view)) == count


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 15), st.integers(1, 12), st.sampled_from(DELTAS))
def test_equal_confidences_are_the_factor_rule(sixteenths, width, delta):
    view = one_row([sixteenths / 16] * width)
    assert chosen(Profile(delta=delta), view) == chosen(Factor(factor=1 - delta), view)


def test_large_sums_are_exact():
    """In bfloat16, sums between 16 and 32 are multiples of 1/8: 60 errors of 2^-7 would all seem to fit."""
    view = one_row([1 - 2**-7] * 200)
    assert len(chosen(Profile(delta=0.25), view)) == 94  # (n + 1) / 128 < 0.75
