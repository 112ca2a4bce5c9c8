"""Thirty schemas of the families that users write: objects, enums, numbers, optional keys, bounded arrays, nested."""

from __future__ import annotations

from typing import Any

STRING, INTEGER, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
SHORT = {"type": "string", "maxLength": 12}


def thing(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object of these keys and no others."""
    body = {"type": "object", "properties": properties, "additionalProperties": False}
    return body | ({"required": list(required)} if required else {})


POINT = thing(("x", "y"), x=INTEGER, y=INTEGER)

SCHEMAS: list[dict[str, Any]] = [
    INTEGER,
    NUMBER,
    FLAG,
    {"type": "null"},
    SHORT,
    {"type": "string", "minLength": 1, "maxLength": 5},
    {"type": "integer", "minimum": 0, "maximum": 120},
    {"type": "integer", "exclusiveMinimum": -10, "exclusiveMaximum": 10},
    {"enum": ["red", "green", "blue"]},
    {"enum": [1, "one", None, True]},
    {"const": {"kind": "fixed", "list": [1, 2]}},
    {"type": ["integer", "null"]},
    {"anyOf": [INTEGER, SHORT]},
    {"oneOf": [{"type": "null"}, {"type": "string", "maxLength": 3}]},
    {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2}$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "uuid"},
    {"type": "array", "items": INTEGER, "maxItems": 4},
    {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 3},
    {"type": "array", "prefixItems": [INTEGER, FLAG, {"type": "null"}], "items": False},
    POINT,
    thing(("name",), name=SHORT, age={"type": "integer", "minimum": 0, "maximum": 99}),
    thing((), a=INTEGER, b=FLAG, c={"type": "null"}),
    thing(("z",), a=INTEGER, m=FLAG, z={"enum": ["end", "stop"]}),
    {"type": "object", "additionalProperties": INTEGER, "maxProperties": 2},
    thing(("points",), points={"type": "array", "items": POINT, "minItems": 1, "maxItems": 2}),
    thing(("outer",), outer=thing(("inner",), inner=thing(("leaf",), leaf=FLAG))),
    {
        "$defs": {"item": thing(("id",), id=INTEGER, tag={"enum": ["x", "y"]})},
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "maxItems": 2}, "total": INTEGER},
        "required": ["items", "total"],
    },
    {
        "oneOf": [
            thing(("kind", "side"), kind={"const": "square"}, side={"type": "integer", "minimum": 1}),
            thing(("kind", "radius"), kind={"const": "circle"}, radius={"type": "integer", "minimum": 1}),
        ]
    },
    thing(
        ("answer", "sure"),
        steps={"type": "array", "items": SHORT, "maxItems": 2},
        answer={"anyOf": [INTEGER, {"type": "null"}]},
        sure=FLAG,
        more=thing((), note=SHORT),
    ),
]
assert len(SCHEMAS) == 30
