"""Ranges of integers as expressions."""

import re

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
