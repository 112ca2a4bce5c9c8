"""Constants, and which branches exclude one another."""

import re

import pytest

from starr.decode.extras.constraints.constants import constants, exclusive
from starr.errors import InputError


def test_only_constants_of_the_type_stay():
    found = constants(["a", 1, True, None], ["integer", "null"])
    assert [text for text in ('"a"', "1", "true", "null") if re.fullmatch(found, text)] == ["1", "null"]
    with pytest.raises(InputError, match="no value of enum"):
        constants(["a"], ["integer"])


@pytest.mark.parametrize(
    ("branches", "found"),
    [
        ([{"type": "string"}, {"type": "null"}], True),
        ([{"type": "integer"}, {"type": "number"}], False),
        ([{"const": 1}, {"enum": [2, "1"]}], True),
        ([{"const": 1}, {"const": 1.0}], False),
        ([{"type": "string", "const": "a"}, {"type": "string", "enum": ["b", "c"]}], True),
        ([{"type": "string", "const": "a"}, {"type": "string", "enum": ["b", "a"]}], False),
        ([{"const": [1.0]}, {"const": [1]}], False),
        ([{"const": 1}, {"type": "string"}], False),
        ([{"enum": 5}, {"const": 1}], False),
        ([True, {"const": 1}], False),
    ],
)
def test_branches_exclude_one_another_where_types_or_constants_show_it(branches, found):
    assert exclusive(branches) is found


def kind(name, **more) -> dict:
    return {"type": "object", "properties": {"kind": {"const": name}}, "required": ["kind"]} | more


@pytest.mark.parametrize(
    ("branches", "found"),
    [
        ([kind("a"), kind("b")], True),
        ([kind("a"), kind("a")], False),
        ([kind("a"), kind("b", required=[])], False),
        ([kind("a"), kind("b", required=5)], False),
        ([kind("a"), kind("b", properties=[])], False),
        ([kind("a", required=[{}]), kind("b", required=[{}])], False),
    ],
)
def test_objects_are_told_apart_by_a_required_constant(branches, found):
    assert exclusive(branches) is found
