"""Strings and integers of a schema, as regular expressions over their JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starr.decode.extras.constraints.numbers import integer_range
from starr.decode.extras.constraints.pattern import SENTINEL, whole_match
from starr.decode.extras.constraints.pieces import least, most, refuse, times

MOST_DIGITS = 400  # of a bound: every float has fewer
LETTER = rf'(?:[^"\\\x00-\x1f\x7f{SENTINEL}]|\\["\\/bfnrt])'
INTEGER = "-?(?:0|[1-9][0-9]*)"
NUMBER = INTEGER + r"(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
MONTH_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
ZONE = "(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])"
OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
FORMATS = {
    "date": f"[0-9]{{3}}[1-9]-{MONTH_DAY}",
    "time": CLOCK + ZONE,
    "date-time": f"[0-9]{{3}}[1-9]-{MONTH_DAY}T{CLOCK}{ZONE}",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "ipv4": rf"{OCTET}(?:\.{OCTET}){{3}}",
    "email": r"[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*@[a-z0-9-]+(?:\.[a-z0-9-]+)+",
}


def string_of(schema: Mapping[str, Any], patterns: list[str]) -> str:
    """The expression of a string; its pattern is added to ``patterns``."""
    named = [name for name in ("pattern", "format") if name in schema]
    low, high = least(schema, "minLength"), most(schema, "maxLength")
    if not named:
        return f'"{LETTER}{times(low, high)}"'
    if len(named) == 2 or low or high is not None:
        raise refuse(
            f"{named[0]} beside another rule of the string is not supported", "Put the length into the pattern."
        )
    if named == ["format"]:
        if schema["format"] not in list(FORMATS):
            known = ", ".join(sorted(FORMATS))
            raise refuse(f"format {schema['format']!r} is not supported", f"Known: {known}.")
        return f'"{FORMATS[schema["format"]]}"'
    if not isinstance(schema["pattern"], str):
        raise refuse("pattern must be a text")
    inner = whole_match(schema["pattern"], "json_schema", quoted=True)
    patterns.append(inner)
    return f'"(?:{inner})"'


def integer_of(schema: Mapping[str, Any]) -> str:
    """The expression of an integer within its bounds."""
    bounds: list[int | None] = []
    for name, open_name, step in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        sides = [(schema[key], shift) for key, shift in ((name, 0), (open_name, step)) if key in schema]
        found = []
        for bound, shift in sides:
            if isinstance(bound, bool) or not isinstance(bound, int | float) or bound % 1 != 0:
                raise refuse(f"{name} of an integer must be a whole number, got {json.dumps(bound)[:40]}")
            if abs(bound) >= 10**MOST_DIGITS:
                raise refuse(f"{name} may have {MOST_DIGITS} digits")
            found.append(int(bound) + shift)
        bounds.append(None if not found else max(found) if step > 0 else min(found))
    low, high = bounds
    if low is None and high is None:
        return INTEGER
    if low is not None and high is not None and low > high:
        raise refuse(f"no integer is from {low} to {high}")
    return integer_range(low, high)
