"""JSON schemas: the expression says no more than the schema, and what it cannot say is refused by keyword."""

import json
import random

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from starr.decode.extras.constraints.automaton import Automaton
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
