"""A constraint as it is asked for, and as one regular expression that an automaton can match."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starr.decode.extras.constraints.pattern import whole_match
from starr.decode.extras.constraints.schema import any_object, schema_expression
from starr.errors import InputError

MOST_CHARACTERS = 100_000  # of an expression
MOST_CHOICES = 1_000


@dataclass(frozen=True, slots=True)
class AskedConstraint:
    """One constraint. ``text`` is the expression, the schema or the list as JSON; ``kind`` is the option's name."""

    kind: str  # "regex", "json_schema" or "choices"
    text: str

    def expression(self) -> tuple[str, list[str]]:
        """The regular expression of the whole answer, and the patterns of JSON strings inside, which may not quote."""
        if self.kind == "regex":
            return whole_match(self.text, "regex"), []
        if self.kind == "choices":
            return "|".join(re.escape(choice) for choice in json.loads(self.text)), []
        found = schema_expression(json.loads(self.text))
        return found.text, found.patterns


def wanted(regex: Any = None, json_schema: Any = None, choices: Any = None) -> AskedConstraint | None:
    """What the three options ask for, checked; None is no constraint, two of them are an error."""
    given = {"regex": regex, "json_schema": json_schema, "choices": choices}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise InputError(f"Only one of {' and '.join(names)} can be used.", param=names[1])
    if not names:
        return None
    makers = {"regex": regex_text, "json_schema": schema_text, "choices": choices_text}
    text = makers[names[0]](given[names[0]])
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{names[0]} may have at most {MOST_CHARACTERS} characters, got {len(text)}.", param=names[0])
    return AskedConstraint(names[0], text)


def regex_text(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise InputError("regex must be a regular expression and not empty.", param="regex")
    return given


def choices_text(given: Any) -> str:
    """A list of texts, one text that is such a list in JSON, or one with | between them."""
    found = given
    if isinstance(given, str):
        found = read_json(given, "choices") if given.lstrip().startswith("[") else given.split("|")
    fine = isinstance(found, Sequence) and 0 < len(found) <= MOST_CHOICES
    if not fine or not all(isinstance(choice, str) and choice for choice in found):
        raise InputError(f"choices must be a list of 1 to {MOST_CHOICES} texts, none of them empty.", param="choices")
    if len(set(found)) < len(found):
        raise InputError("choices must differ from each other.", param="choices")
    return json.dumps(list(found))


def schema_text(given: Any) -> str:
    """A schema, as JSON text or as an object; a pydantic model class gives its own; "object" is any JSON object."""
    if hasattr(given, "model_json_schema"):
        given = given.model_json_schema()
    if given == "object":
        given = any_object()
    found = read_json(given, "json_schema") if isinstance(given, str) else given
    if not isinstance(found, Mapping | bool):
        raise InputError("json_schema must be a JSON schema, an object.", param="json_schema")
    try:
        return json.dumps(found, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError("json_schema must be plain JSON.", param="json_schema") from None


def read_json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{name} is not JSON.", param=name) from None
