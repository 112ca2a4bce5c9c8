"""JSON schemas: the expression says no more than the schema, and what it cannot say is refused by keyword."""

import json
import math
import random
import re

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outlines_core.json_schema import build_regex_from_schema

from starr.decode.extras.constraints.automaton import Automaton
from starr.decode.extras.constraints.schema import (
    FORMATS,
    Translator,
    exclude_each_other,
    join_alternatives,
    read_count,
    repeat_item,
    translate_integer,
    write_any_value,
    write_constants,
    write_integer_range,
    write_repeat,
)
from starr.errors import InputError
from tests.decode.extras.constraints.random_schemas import schemas
from tests.decode.extras.constraints.schemas import SCHEMAS
from tests.decode.extras.constraints.toy import accepts, made


def random_text(automaton: Automaton, rng: random.Random, patience: int = 40) -> str:
    """A text of the automaton's language: a random walk, which takes the shortest way to the end after a while."""
    moves = automaton.moves[:, automaton.class_of[:256]]
    distance = np.where(automaton.final, 0, 10**6)
    distance[-2:] = 10**6  # neither END nor DEAD
    for _ in range(len(moves)):
        distance = np.minimum(distance, distance[moves].min(axis=1) + 1)
    state, found = automaton.start, bytearray()
    while not (automaton.final[state] and (len(found) > patience or rng.random() < 0.4)):
        near = distance[moves[state]]
        options = np.flatnonzero(near == near.min() if len(found) > patience else near < 10**6)
        if not len(options):
            break
        plain = [byte for byte in options.tolist() if 32 <= byte < 127]
        found.append(rng.choice(plain or options.tolist()))
        state = moves[state, found[-1]]
    return found.decode()


@pytest.mark.parametrize("schema", SCHEMAS, ids=[f"{n}" for n in range(len(SCHEMAS))])
def test_every_text_of_the_automaton_validates(schema):
    automaton = made(json_schema=schema)
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    for seed in range(12):
        text = random_text(automaton, random.Random(seed))
        validator.validate(json.loads(text))


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": -3, "exclusiveMaximum": 12}, ["-3", "0", "11"], ["12", "-4", "01", "-0"]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"é漢"', r'"\n\""'], ['"a"', '"abcd"', '"a\nb"']),
        (
            {"enum": ["a", 'b"c', 1, None, True, {"x": [1]}]},
            ['"a"', '"b\\"c"', "1", "null", "true", '{"x": [1]}'],
            ["2"],
        ),
        ({"enum": ["a", 1, True], "type": "integer"}, ["1"], ['"a"', "true"]),
        ({"type": "string", "pattern": "^[a-z]{2}-[0-9]+$"}, ['"ab-12"'], ['"ab-"', "ab-1"]),
        ({"type": ["integer", "null"]}, ["1", "null"], ["1.5", '"1"']),
        ({"type": "string", "anyOf": [True, {"maxLength": 1}]}, ['"a"', '"bcd"'], ["3", "null"]),
        ({"type": "number", "anyOf": [{"type": "integer"}]}, ["3"], ["3.5"]),
        (
            {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}},
            ['{"a": 1}'],
            ['{"a": "x"}', "{}"],
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
            ["[1]", "[1, 2]"],
            ["[]", "[1,2,3]"],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}, "c": {"type": "null"}}},
            ["{}", '{"a": 1}', '{"b":null}', '{"a":1,"c":null}', '{"b": null, "c": null}'],
            ['{"c":null,"a":1}', '{"a":1,}', '{"d":1}'],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "required": ["b"]},
            ['{"b":null}', '{"a":null,"b":null}'],
            ["{}", '{"a":null}'],
        ),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "items": False},
            ["[1, null]"],
            ["[1]"],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1},
            ["{}", '{"x": 1}'],
            ['{"x":"a"}'],
        ),
        ({"type": "string", "format": "date"}, ['"2024-02-28"'], ['"2024-02-30"', '"2024-13-01"']),
    ],
)
def test_what_a_schema_lets_through(schema, good, bad):
    automaton = made(json_schema=schema)
    assert [text for text in good if not accepts(automaton, text)] == []
    assert [text for text in bad if accepts(automaton, text)] == []


LOOSE = [  # what the library's own translation lets through, though it does not validate
    ({"type": "integer", "minimum": 3}, "2"),
    ({"type": "integer", "multipleOf": 3}, "4"),
    ({"type": "array", "items": {"type": "null"}, "uniqueItems": True}, "[null,null]"),
    ({"type": "object", "properties": {"a": {"type": "null"}}, "minProperties": 1}, "{}"),
    ({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]}, '{"a":null}'),
    ({"type": "array", "prefixItems": [{"type": "null"}], "minItems": 2}, "[null]"),
    ({"type": "string", "not": {"const": "a"}}, '"a"'),
    ({"type": "string", "enum": ["a", 1]}, "1"),
    ({"anyOf": [{"type": "integer"}], "minimum": 3}, "2"),
    ({"type": "string", "pattern": "^[ab]+$", "maxLength": 2}, '"xy"'),
    ({"allOf": [{"type": "integer"}, {"type": "null"}]}, "1null"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "1"),
    ({"type": "string", "pattern": "a.c"}, '"a"c"'),
    ({"type": "string", "pattern": "^a|b$"}, '"a'),
    ({"type": "string", "format": "date"}, '"2024-02-31"'),
]


@pytest.mark.parametrize(("schema", "text"), LOOSE, ids=[json.dumps(schema) for schema, _ in LOOSE])
def test_our_translation_is_stricter_than_that_of_the_library(schema, text):
    """When this fails because the library refuses the text, see whether ours is still needed."""
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    with pytest.raises((ValueError, jsonschema.ValidationError)):
        validator.validate(json.loads(text))
    assert re.fullmatch(build_regex_from_schema(json.dumps(schema)), text)
    try:
        ours = made(json_schema=schema)
    except InputError:  # a keyword that cannot be kept
        return
    assert not accepts(ours, text)


def nested(depth: int) -> dict:
    return {"type": "array", "items": nested(depth - 1) if depth else {"type": "null"}, "maxItems": 1}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "multipleOf": 3}, "multipleOf"),
        ({"type": "number", "minimum": 3}, "minimum"),
        ({"not": {"type": "null"}}, "not"),
        ({"if": {}, "then": {}}, "if"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "object", "patternProperties": {"a": {}}}, "patternProperties"),
        ({"type": "string", "format": "hostname"}, "hostname"),
        ({"type": "string", "pattern": 'a"?'}, "quote"),
        ({"type": "string", "pattern": "a(?=b)"}, "look-around"),
        ({"type": "string", "pattern": "a", "maxLength": 3}, "pattern beside"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, "allOf"),
        ({"anyOf": [{"type": "integer"}], "minimum": 3}, "beside anyOf"),
        ({"$ref": "#"}, "refers to itself"),
        ({"$ref": "https://example.org/x"}, "references within"),
        ({"$ref": "#/$defs/none"}, "nothing at"),
        (nested(9), "nested more than"),
        ({"type": "what"}, "type must be"),
        ({"type": 5}, "type must be"),
        ({"type": []}, "type must be"),
        ({"$ref": "#/$defs/a", "type": "string", "$defs": {"a": {"type": "integer"}}}, "type beside"),
        ({"type": "string", "anyOf": [{"type": "integer"}]}, "type of a branch"),
        ({"type": "array", "minItems": None}, "minItems"),
        ({"type": "integer", "minimum": None}, "minimum"),
        ({"type": "object", "required": [1]}, "required"),
        ({"type": "object", "required": ["a"], "additionalProperties": False}, "'a' is required"),
        ({"enum": []}, "enum"),
        ({"type": "string", "minLength": 5, "maxLength": 2}, "not possible"),
        ({"type": "string", "maxLength": 10**9}, "too long|states"),
        (False, "must be an object"),
    ],
)
def test_what_a_schema_cannot_have_is_refused_by_name(schema, words):
    with pytest.raises(InputError, match=words) as caught:
        made(json_schema=schema)
    assert caught.value.param == "json_schema"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schema=schemas)
def test_a_random_schema_is_kept_or_refused(schema):
    """Wrong ones too: an expression, or one line. Where the schema is a schema, every text of it validates."""
    try:
        automaton = made(json_schema=schema)
        jsonschema.Draft202012Validator.check_schema(schema)
    except (InputError, jsonschema.SchemaError):
        return
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    for seed in range(4):
        validator.validate(json.loads(random_text(automaton, random.Random(seed))))


def test_a_schema_that_doubles_with_every_reference_is_refused_early():
    defs = {f"s{n}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/s{n + 1}"}] * 30} for n in range(3)}
    with pytest.raises(InputError, match="too large"):
        made(json_schema={"$ref": "#/$defs/s0", "$defs": defs | {"s3": {"type": "null"}}})


def test_any_object_has_bounded_depth():
    automaton = made(json_schema="object")
    assert accepts(automaton, '{"a": [1, "x"], "b": {}, "c": null}')
    assert not accepts(automaton, "[1]")
    assert not accepts(automaton, '{"a": {"b": {"c": {"d": 1}}}}')


def test_a_schema_is_as_small_as_its_expression():
    assert np.array_equal(made(json_schema={"type": "null"}).moves, made(regex="null").moves)


DIGIT = {"enum": list(range(10))}


def fits(expression: str, *texts: str) -> list[bool]:
    return [re.fullmatch(expression, text) is not None for text in texts]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"items": DIGIT}, ["[]", "[1]", "[1,2, 3]"], ["[1 ,2]", "[,]", "[1,]"]),
        ({"items": DIGIT, "minItems": 2, "maxItems": 3}, ["[1,2]", "[1,2,3]"], ["[1]", "[1,2,3,4]"]),
        ({"maxItems": 0}, ["[]"], ["[1]"]),
        ({"items": False}, ["[]"], ["[1]"]),
        ({"prefixItems": [DIGIT, DIGIT]}, ["[1,2]"], ["[1]", "[1,2,3]"]),
    ],
)
def test_arrays(schema, good, bad):
    assert fits(Translator(schema).translate({"type": "array"} | schema), *good, *bad) == [True] * len(good) + [
        False
    ] * len(bad)


@pytest.mark.parametrize("needed", [[], ["a"], ["b"], ["c"], ["a", "c"], ["a", "b", "c"]])
def test_every_choice_of_optional_keys_and_no_other_order(needed):
    schema = {"properties": dict.fromkeys("abc", DIGIT), "required": needed}
    found = Translator(schema).translate(schema)
    for number in range(8):
        there = [name for place, name in enumerate("abc") if number >> place & 1]
        text = json.dumps(dict.fromkeys(there, 1))
        assert fits(found, text) == [set(needed) <= set(there)]
        if len(there) > 1:
            assert fits(found, json.dumps(dict.fromkeys(reversed(there), 1))) == [False]


def test_a_required_key_that_is_not_declared_is_one_of_the_additional_ones():
    schema = {"required": ["a"], "additionalProperties": {"type": "null"}}
    assert fits(Translator(schema).translate(schema), '{"a": null}', "{}", '{"a": 1}') == [True, False, False]


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
        Translator(schema).translate({"type": "object"} | schema)


def test_a_free_value_has_a_bounded_depth():
    found = made(regex=write_any_value(1))
    assert [accepts(found, text) for text in ('[1, "a"]', '{"a": null}', "true", "[[1]]")] == [True, True, True, False]


def test_a_string_counts_its_escapes_once():
    found = made(json_schema={"maxLength": 2})
    assert accepts(found, r'"\n\""')
    assert not accepts(found, '"abc"')
    assert not accepts(found, '"\n"')


def test_a_pattern_is_handed_on_for_the_check_of_its_quotes():
    translator = Translator({"pattern": "^[ab]+$"})
    assert re.fullmatch(translator.translate(translator.root), '"abba"')
    assert translator.patterns == ["[ab]+"]


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
    found = translate_integer({"minimum": 3, "exclusiveMinimum": 3, "maximum": 12.0, "exclusiveMaximum": 20})
    assert [value for value in range(-30, 30) if re.fullmatch(found, str(value))] == list(range(4, 13))


@pytest.mark.parametrize("bound", [True, "3", 1.5, math.inf, math.nan, None])
def test_a_bound_that_is_no_whole_number_is_refused(bound):
    with pytest.raises(InputError, match="must be a whole number"):
        translate_integer({"minimum": bound})


def test_bounds_without_an_integer_between_are_refused():
    with pytest.raises(InputError, match="no integer is from 5 to 4"):
        translate_integer({"minimum": 5, "exclusiveMaximum": 5})


@pytest.mark.parametrize("name", ["minimum", "exclusiveMaximum"])
def test_a_bound_of_very_many_digits_is_refused(name):
    with pytest.raises(InputError, match="may have 400 digits"):
        translate_integer({name: -(10**4000)})


def test_only_constants_of_the_type_stay():
    found = write_constants(["a", 1, True, None], ["integer", "null"])
    assert [text for text in ('"a"', "1", "true", "null") if re.fullmatch(found, text)] == ["1", "null"]
    with pytest.raises(InputError, match="no value of enum"):
        write_constants(["a"], ["integer"])


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
    assert exclude_each_other(branches) is found


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
    assert exclude_each_other(branches) is found


def test_equal_alternatives_are_one():
    assert join_alternatives(["a", "b", "a"]) == "(?:a|b)"


def test_a_bound_that_is_not_there_is_none():
    assert [read_count(schema, "minItems") for schema in ({}, {"minItems": 2}, {"minItems": 0})] == [None, 2, 0]


@pytest.mark.parametrize("wrong", [None, True, -1, 1.5, "3"])
def test_a_bound_that_is_no_count_is_refused_by_name(wrong):
    with pytest.raises(InputError, match="minItems must be a whole number"):
        read_count({"minItems": wrong}, "minItems")


def test_repetitions():
    assert re.fullmatch(f"a{write_repeat(1, 2)}", "aa")
    assert re.fullmatch(f"a{write_repeat(1, None)}", "aaaa")
    with pytest.raises(InputError, match="at least 3 and at most 2"):
        write_repeat(3, 2)
    assert fits(repeat_item("a", 1, 2), "", "a", "a, a", "a,a,a") == [False, True, True, False]


bounds = st.none() | st.integers(-2000, 2000)


@settings(max_examples=300, deadline=None)
@given(low=bounds, high=bounds, value=st.integers(-5000, 5000))
def test_integer_ranges(low, high, value):
    if low is not None and high is not None and low > high:
        low, high = high, low
    inside = (low is None or low <= value) and (high is None or value <= high)
    assert bool(re.fullmatch(write_integer_range(low, high), str(value))) == inside


@pytest.mark.parametrize("high", [2**31 - 1, 2**63 - 1, 10**30, int(1e308)])
def test_the_expression_grows_with_the_digits_of_a_bound(high):
    expression = write_integer_range(-high, high)
    assert len(expression) < 10 * len(str(high)) ** 2
    for value in (0, 9, 10, high // 2, high, -high):
        assert re.fullmatch(expression, str(value))
    assert not re.fullmatch(expression, str(high + 1))
