"""What every part of a schema's translation uses: alternatives, counts, and the refusal of what cannot be said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starr.errors import InputError

BLANK = " ?"


def refuse(what: str, hint: str = "") -> InputError:
    """The error that says what a schema cannot have."""
    return InputError(f"json_schema: {what}.", hint=hint, param="json_schema")


def any_of(parts: Sequence[str]) -> str:
    """One of several expressions."""
    return f"(?:{'|'.join(dict.fromkeys(parts))})"


def least(schema: Mapping[str, Any], name: str) -> int:
    """A lower bound, 0 where there is none."""
    found = schema.get(name, 0)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise refuse(f"{name} must be a whole number from 0 on, got {json.dumps(found)[:40]}")
    return found


def most(schema: Mapping[str, Any], name: str) -> int | None:
    """An upper bound, None where there is none."""
    return least(schema, name) if name in schema else None


def times(low: int, high: int | None) -> str:
    """A repetition count, as an expression writes it."""
    if high is not None and high < low:
        raise refuse(f"at least {low} and at most {high} is not possible")
    return f"{{{low},{'' if high is None else high}}}"
