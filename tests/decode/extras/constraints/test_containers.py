"""Arrays and objects of schemas, by Python's own expressions; ``inner`` makes every part a digit."""

import json
import re

import pytest

from starr.decode.extras.constraints.containers import array_of, free_value, object_of
from starr.errors import InputError
from tests.decode.extras.constraints.toy import accepts, made


def digit(schema) -> str:
    return "[0-9]"


def fits(expression: str, *texts: str) -> list[bool]:
    return [re.fullmatch(expression, text) is not None for text in texts]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({}, ["[]", "[1]", "[1,2, 3]"], ["[1 ,2]", "[,]", "[1,]"]),
        ({"minItems": 2, "maxItems": 3}, ["[1,2]", "[1,2,3]"], ["[1]", "[1,2,3,4]"]),
        ({"maxItems": 0}, ["[]"], ["[1]"]),
        ({"items": False}, ["[]"], ["[1]"]),
        ({"prefixItems": [{}, {}]}, ["[1,2]"], ["[1]", "[1,2,3]"]),
    ],
)
def test_arrays(schema, good, bad):
    assert fits(array_of(schema, digit), *good, *bad) == [True] * len(good) + [False] * len(bad)


@pytest.mark.parametrize("needed", [[], ["a"], ["b"], ["c"], ["a", "c"], ["a", "b", "c"]])
def test_every_choice_of_optional_keys_and_no_other_order(needed):
    found = object_of({"properties": {"a": {}, "b": {}, "c": {}}, "required": needed}, digit)
    for number in range(8):
        there = [name for place, name in enumerate("abc") if number >> place & 1]
        text = json.dumps(dict.fromkeys(there, 1))
        assert fits(found, text) == [set(needed) <= set(there)]
        if len(there) > 1:
            assert fits(found, json.dumps(dict.fromkeys(reversed(there), 1))) == [False]


def test_a_required_key_that_is_not_declared_is_one_of_the_additional_ones():
    asked = []
    object_of({"required": ["a"], "additionalProperties": {"type": "null"}}, lambda part: asked.append(part) or "0")
    assert asked == [{"type": "null"}]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"required": ["a"], "additionalProperties": False}, "'a' is required"),
        ({"required": ["a", "a"], "minProperties": 2}, "minProperties"),
        ({"required": "a"}, "required a list"),
        ({"minProperties": 2}, "above 1"),
    ],
)
def test_objects_that_cannot_be_kept_are_refused(schema, words):
    with pytest.raises(InputError, match=words):
        object_of(schema, digit)


def test_a_free_value_has_a_bounded_depth():
    found = made(regex=free_value(1))
    assert [accepts(found, text) for text in ('[1, "a"]', '{"a": null}', "true", "[[1]]")] == [True, True, True, False]
