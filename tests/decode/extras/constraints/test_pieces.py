"""Counts, alternatives and refusals of schemas."""

import re

import pytest

from starr.decode.extras.constraints.pieces import any_of, least, most, times
from starr.errors import InputError


def test_equal_alternatives_are_one():
    assert any_of(["a", "b", "a"]) == "(?:a|b)"


def test_bounds_that_are_not_there():
    assert (least({}, "minItems"), most({}, "maxItems")) == (0, None)
    assert (least({"minItems": 2}, "minItems"), most({"maxItems": 0}, "maxItems")) == (2, 0)


@pytest.mark.parametrize("wrong", [None, True, -1, 1.5, "3"])
def test_a_bound_that_is_no_count_is_refused_by_name(wrong):
    for read in (least, most):
        with pytest.raises(InputError, match="minItems must be a whole number"):
            read({"minItems": wrong}, "minItems")


def test_repetitions():
    assert re.fullmatch(f"a{times(1, 2)}", "aa")
    assert re.fullmatch(f"a{times(1, None)}", "aaaa")
    with pytest.raises(InputError, match="at least 3 and at most 2"):
        times(3, 2)
