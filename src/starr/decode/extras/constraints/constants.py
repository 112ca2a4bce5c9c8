"""Constants of a schema, and whether alternatives exclude one another."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from starr.decode.extras.constraints.pieces import any_of, refuse


def constants(values: Any, kinds: list[str] | None) -> str:
    """One of the values that are of one of the types, None being any."""
    if not isinstance(values, list) or not values:
        raise refuse("enum must be a list of values")
    kept = [each for each in values if kinds is None or any(is_a(each, k) for k in kinds)]
    if not kept:
        raise refuse("no value of enum is of the type")
    return any_of([re.escape(json.dumps(each, ensure_ascii=False)) for each in kept])


def is_a(found: Any, kind: str) -> bool:
    """Whether a constant is of a JSON type."""
    if isinstance(found, bool):
        return kind == "boolean"
    kinds: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    return found is None if kind == "null" else kind in kinds and isinstance(found, kinds[kind])


def exclusive(branches: list[Any]) -> bool:
    """Whether no value fits two branches, as far as types, or constants of one required key, show it."""
    if not all(isinstance(branch, Mapping) for branch in branches):
        return False
    kinds = [branch.get("type") for branch in branches]
    if all(isinstance(kind, str) for kind in kinds):
        if len(set(kinds)) == len(kinds) and not {"integer", "number"} <= set(kinds):
            return True
        if all(kind == "object" for kind in kinds) and told_apart(branches):
            return True
    return differ([constants_of(branch) for branch in branches])


def told_apart(branches: list[Any]) -> bool:
    """Whether a key that every branch requires has constants that all differ."""
    listed = [(branch.get("required", []), branch.get("properties", {})) for branch in branches]
    if not all(isinstance(required, list) and isinstance(declared, Mapping) for required, declared in listed):
        return False
    shared = [key for key in listed[0][0] if all(key in required for required, _ in listed)]
    return any(
        differ([constants_of(declared.get(key)) for _, declared in listed]) for key in shared if isinstance(key, str)
    )


def constants_of(schema: Any) -> list[str] | None:
    """The constants of a schema, equal ones as equal texts; None where it has others."""
    values = (
        schema.get("enum", [schema["const"]] if "const" in schema else None) if isinstance(schema, Mapping) else None
    )
    if not isinstance(values, list):
        return None
    return [json.dumps(json.loads(json.dumps(each), parse_float=plain), sort_keys=True) for each in values]


def plain(text: str) -> int | float:
    """A number as JSON schema sees it: 1.0 is 1."""
    number = float(text)
    return int(number) if number.is_integer() else number


def differ(listed: list[list[str] | None]) -> bool:
    """Whether no constant is in two of the lists."""
    every = [text for texts in listed for text in texts or []]
    return None not in listed and len(set(every)) == len(every)
