"""What crosses the pipe: the exact built-in types, and names for everything else."""

import json
import math
from collections import Counter, OrderedDict, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starr.evals.grading.inside.judge import Raised, rebuild
from starr.evals.grading.inside.plain import decode, encode

ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.recursive(ATOMS, lambda inner: st.tuples(inner) | st.frozensets(inner, max_size=3), max_leaves=4)
VALUES = st.recursive(
    KEYS,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner) | st.sets(KEYS),
    max_leaves=20,
)


def refuse(value):
    raise TypeError(value)


def cross(value):
    return decode(json.loads(json.dumps(encode(value, refuse))), refuse)


def kinds(value):
    """The value's type and those of its parts."""
    if isinstance(value, dict):
        return (dict, kinds(list(value.items())))
    if isinstance(value, set | frozenset):
        return (type(value), sorted(str(kinds(v)) for v in value))
    return (type(value), [kinds(v) for v in value]) if isinstance(value, list | tuple) else type(value)


@given(VALUES)
def test_plain_values_cross_unchanged(value):
    assert cross(value) == value
    assert kinds(cross(value)) == kinds(value)


@given(st.complex_numbers(allow_nan=False))
def test_complex_numbers_cross_unchanged(value):
    assert cross(value) == value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (namedtuple("P", "x y")(1, 2), (1, 2)),
        (type("Text", (str,), {"__eq__": lambda *_: True, "__hash__": str.__hash__})("a"), "a"),
        (type("Number", (int,), {"__eq__": lambda *_: True})(3), 3),
    ],
)
def test_subclasses_arrive_as_their_plain_kind(value, plain):
    found = cross(value)
    assert type(found) is type(plain)
    assert found == plain


@pytest.mark.parametrize("value", [object(), len, int, range(3), iter([]), [object()], {1: len}])
def test_nothing_else_crosses(value):
    with pytest.raises(TypeError):
        cross(value)


@pytest.mark.parametrize(
    "data",
    [{}, {"a": 1, "b": 2}, {"object": []}, {"set": [[]]}, {"dict": [[1]]}, {"dict": [[[], 1]]}, {"complex": ["x"]},
     {"complex": [1, 2, 3]}, {"bytes": "zz"}, {"bytes": 3}, {"tuple": 3}, [{"x": 1}], {"name": "f"}],
)  # fmt: skip
def test_data_of_another_form_is_refused(data):
    with pytest.raises((ValueError, TypeError, KeyError)):
        decode(data, refuse)


def test_not_a_number_arrives_as_one():
    assert math.isnan(cross(float("nan")))
    assert cross(float("-inf")) == -math.inf


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ValueError", ValueError), ("KeyError", KeyError), ("AssertionError", AssertionError)]
    + [(name, Raised) for name in ("StopIteration", "StopAsyncIteration", "SystemExit", "GeneratorExit", "print")]
    + [(name, Raised) for name in ("UnicodeDecodeError", "ExceptionGroup", "Mine", "__import__", "")],
)
def test_exceptions_cross_by_name(name, kind):
    assert type(rebuild(name, "words")) is kind
