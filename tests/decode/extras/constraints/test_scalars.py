"""Strings and integers of schemas, by Python's own expressions."""

import math
import re

import pytest

from starr.decode.extras.constraints.scalars import FORMATS, integer_of, string_of
from starr.errors import InputError
from tests.decode.extras.constraints.toy import accepts, made


def test_a_string_counts_its_escapes_once():
    found = made(regex=string_of({"maxLength": 2}, []))
    assert accepts(found, r'"\n\""')
    assert not accepts(found, '"abc"')
    assert not accepts(found, '"\n"')


def test_a_pattern_is_handed_on_for_the_check_of_its_quotes():
    patterns = []
    assert re.fullmatch(string_of({"pattern": "^[ab]+$"}, patterns), '"abba"')
    assert patterns == ["[ab]+"]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-11-30", "2024-11-31"),
        ("time", "23:59:59Z", "24:00:00Z"),
        ("date-time", "2024-01-31T00:00:00+01:00", "2024-01-31"),
        ("uuid", "0" * 8 + "-0000-0000-0000-" + "0" * 12, "0" * 32),
        ("ipv4", "255.0.10.1", "256.0.0.1"),
        ("email", "a.b@c.de", "a@b"),
    ],
)
def test_formats(name, good, bad):
    assert re.fullmatch(FORMATS[name], good)
    assert not re.fullmatch(FORMATS[name], bad)


def test_the_narrower_of_two_bounds_counts():
    found = integer_of({"minimum": 3, "exclusiveMinimum": 3, "maximum": 12.0, "exclusiveMaximum": 20})
    assert [value for value in range(-30, 30) if re.fullmatch(found, str(value))] == list(range(4, 13))


@pytest.mark.parametrize("bound", [True, "3", 1.5, math.inf, math.nan, None])
def test_a_bound_that_is_no_whole_number_is_refused(bound):
    with pytest.raises(InputError, match="must be a whole number"):
        integer_of({"minimum": bound})


def test_bounds_without_an_integer_between_are_refused():
    with pytest.raises(InputError, match="no integer is from 5 to 4"):
        integer_of({"minimum": 5, "exclusiveMaximum": 5})


@pytest.mark.parametrize("name", ["minimum", "exclusiveMaximum"])
def test_a_bound_of_very_many_digits_is_refused(name):
    with pytest.raises(InputError, match="may have 400 digits"):
        integer_of({name: -(10**4000)})
