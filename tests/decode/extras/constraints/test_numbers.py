"""Ranges of integers as expressions."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.extras.constraints.numbers import integer_range

bounds = st.none() | st.integers(-2000, 2000)


@settings(max_examples=300, deadline=None)
@given(low=bounds, high=bounds, value=st.integers(-5000, 5000))
def test_integer_ranges(low, high, value):
    if low is not None and high is not None and low > high:
        low, high = high, low
    inside = (low is None or low <= value) and (high is None or value <= high)
    assert bool(re.fullmatch(integer_range(low, high), str(value))) == inside


@pytest.mark.parametrize("high", [2**31 - 1, 2**63 - 1, 10**30, int(1e308)])
def test_the_expression_grows_with_the_digits_of_a_bound(high):
    expression = integer_range(-high, high)
    assert len(expression) < 10 * len(str(high)) ** 2
    for value in (0, 9, 10, high // 2, high, -high):
        assert re.fullmatch(expression, str(value))
    assert not re.fullmatch(expression, str(high + 1))
