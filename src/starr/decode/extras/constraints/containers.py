"""Arrays and objects of a schema; ``inner`` translates the schemas inside them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from starr.decode.extras.constraints.pieces import BLANK, least, most, refuse, times
from starr.decode.extras.constraints.scalars import LETTER, NUMBER

FREE_DEPTH = 2  # containers of a value that the schema leaves open
Inner = Callable[[Any], str]


def array_of(schema: Mapping[str, Any], inner: Inner) -> str:
    """Bounded by minItems and maxItems; ``prefixItems`` come first, and all of them."""
    low, high = least(schema, "minItems"), most(schema, "maxItems")
    listed = schema.get("prefixItems", [])
    if not isinstance(listed, list):
        raise refuse("prefixItems must be a list of schemas")
    first = [inner(each) for each in listed]
    rest = schema.get("items", True)
    if first and (rest is not False and "items" in schema):
        raise refuse("items beside prefixItems must be false")
    if first:
        if low > len(first) or (high is not None and high < len(first)):
            raise refuse("minItems and maxItems must fit prefixItems")
        return rf"\[{f',{BLANK}'.join(first)}\]"
    if rest is False or high == 0:
        times(low, 0)
        return r"\[\]"
    item = inner(rest)
    more = f"{item}(?:,{BLANK}{item}){times(max(low - 1, 0), None if high is None else high - 1)}"
    times(low, high)
    return rf"\[{more}\]" if low else rf"\[(?:{more})?\]"


def object_of(schema: Mapping[str, Any], inner: Inner) -> str:
    """Declared keys in their order, those not required optional; without declared keys a map of any keys."""
    declared = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(declared, Mapping) or not isinstance(required, list):
        raise refuse("properties must be an object and required a list")
    if not all(isinstance(name, str) for name in required):
        raise refuse("required must be a list of texts")
    others = schema.get("additionalProperties", True)
    missing = {name: others for name in required if name not in declared}
    if missing and others is False:
        raise refuse(f"{next(iter(missing))!r} is required, and additionalProperties leaves it out")
    declared = dict(declared) | missing
    low, high = least(schema, "minProperties"), most(schema, "maxProperties")
    if not declared:
        return map_of(others, low, high, inner)
    if low > len(set(required)) or (high is not None and high < len(declared)):
        raise refuse("minProperties and maxProperties must follow from required and properties")
    pairs = [(f"{key_of(name)}:{BLANK}{inner(each)}", name in required) for name, each in declared.items()]
    return rf"\{{{members(pairs)}\}}"


def key_of(name: str) -> str:
    """The expression of a key."""
    return re.escape(json.dumps(name, ensure_ascii=False))


def members(pairs: list[tuple[str, bool]]) -> str:
    """Members with commas between those that are there; the first required one needs none beside it."""
    comma = f",{BLANK}"
    anchor = next((place for place, (_, needed) in enumerate(pairs) if needed), None)
    if anchor is not None:
        before = "".join(f"(?:{text}{comma})?" for text, _ in pairs[:anchor])
        return before + pairs[anchor][0] + following(pairs[anchor + 1 :])
    return f"(?:{'|'.join(pairs[i][0] + following(pairs[i + 1 :]) for i in range(len(pairs)))})?"


def following(pairs: list[tuple[str, bool]]) -> str:
    """Members after one that is there."""
    return "".join(f",{BLANK}{text}" if needed else f"(?:,{BLANK}{text})?" for text, needed in pairs)


def map_of(others: Any, low: int, high: int | None, inner: Inner) -> str:
    """An object of any keys. Keys may repeat in the text, so more than one member cannot be demanded."""
    if low > 1:
        raise refuse("minProperties above 1 is not supported without properties")
    if others is False or high == 0:
        times(low, 0)
        return r"\{\}"
    each = free_value(FREE_DEPTH - 1) if others is True else inner(others)
    pair = f'"{LETTER}*":{BLANK}{each}'
    more = f"{pair}(?:,{BLANK}{pair}){times(0, None if high is None else high - 1)}"
    return rf"\{{{more}\}}" if low else rf"\{{(?:{more})?\}}"


def free_value(depth: int) -> str:
    """Any JSON value with at most ``depth`` containers inside one another."""
    plain = rf'"{LETTER}*"|{NUMBER}|true|false|null'
    if depth == 0:
        return f"(?:{plain})"
    inner = free_value(depth - 1)
    pair = f'"{LETTER}*":{BLANK}{inner}'
    listed = rf"\[(?:{inner}(?:,{BLANK}{inner})*)?\]"
    return rf"(?:{plain}|{listed}|\{{(?:{pair}(?:,{BLANK}{pair})*)?\}})"
