"""A constraint as the user gives it, and as one regular expression of the whole answer.

``child`` puts a sentinel in front of every expression and behind it, a character that no text has. The library's
automaton can also begin anywhere in a text, and prefers the first alternative that ends; with the sentinels it begins
once, ends once, and stays as small as the expression. So whatever says "any but" must leave the sentinel out.

Regular expression libraries differ in what ``\\w`` and its like match. Here each matches what the library and Python
agree on; in a pattern of a JSON string, JavaScript must agree too. In such a string, "any but" also leaves out the
characters that JSON writes with a backslash.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starr.errors import InputError

MAX_CHARACTERS = 100_000  # of a constraint
MAX_CHOICES = 1_000
SENTINEL = r"\x{10ffff}"
ESCAPED = r"\"\\\x00-\x1f\x7f\u2028\u2029"  # what a JSON string writes with a backslash, or JavaScript ends a line with
CLASS_BODY = r"\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]"
PARTS = re.compile(
    r"(?P<look>\(\?(?:=|!|<=|<!))|(?P<atomic>\(\?>)|(?P<possessive>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\+)"
    r"|(?P<back>\\[1-9]|\\k|\(\?P=)|(?P<edge>\\[bBAzZG]|[\^$])"
    rf"|(?P<negated>\[\^{CLASS_BODY})|(?P<class>\[{CLASS_BODY})"
    r"|(?P<escape>\\.)|(?P<dot>\.)|(?P<flags>\(\?[a-zA-Z]*s)",
    re.DOTALL,
)
REFUSED = {
    "look": "a look-around",
    "atomic": "an atomic group",
    "possessive": "a possessive repeat",
    "back": "a back reference",
    "edge": "an anchor or word boundary inside",
}
NARROW = {  # what every library matches
    "d": r"[\d&&\p{age=14.0}]",  # Python 3.11 has the characters of Unicode 14
    "w": r"[\p{L}\p{Nd}\p{Nl}_&&\p{age=14.0}]",
    "D": r"\D",
    "W": r"[\W&&[^\p{N}]]",
    "S": r"[\S&&[^\x1c-\x1f]]",
}
PLAIN = {"<": "<", ">": ">"}  # the library has word boundaries of that name
WIDE = PLAIN | {"w": r"[\w\p{N}]", "s": r"[\s\x1c-\x1f\ufeff]"}  # what some library matches
IN_STRINGS = {"d": "[0-9]", "w": "[0-9A-Za-z_]", "s": "[ ]"}


@dataclass(frozen=True, slots=True)
class ConstraintSpec:
    """One constraint. ``text`` is the expression, or all else as JSON; ``kind`` is the option's name."""

    kind: str  # "regex", "json_schema", "choices" or "tools"
    text: str


def parse_constraint(
    regex: Any = None, json_schema: Any = None, choices: Any = None, tools: Any = None
) -> ConstraintSpec | None:
    """Parse and check the options; None is no constraint, two of them are an error. ``tools`` are parsed before."""
    given = {"regex": regex, "json_schema": json_schema, "choices": choices, "tools": tools}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise InputError(f"Only one of {' and '.join(names)} can be used.", param=names[1])
    if not names:
        return None
    if regex is not None:
        if not isinstance(regex, str) or not regex:
            raise InputError("regex must be a regular expression and not empty.", param="regex")
        text = regex
    elif tools is not None:
        text = write_json(tools, "tools")
    else:
        text = read_json_schema(json_schema) if choices is None else json.dumps(read_choices(choices))
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{names[0]} may have at most {MAX_CHARACTERS} characters, got {len(text)}.", param=names[0])
    return ConstraintSpec(names[0], text)


def read_choices(given: Any) -> list[str]:
    """Read a list of texts, one text that is such a list in JSON, or one with | between them."""
    if isinstance(given, str):
        given = read_json(given, "choices") if given.lstrip().startswith("[") else given.split("|")
    fine = isinstance(given, Sequence) and 0 < len(given) <= MAX_CHOICES
    if not fine or not all(isinstance(choice, str) and choice for choice in given):
        raise InputError(f"choices must be a list of 1 to {MAX_CHOICES} texts, none of them empty.", param="choices")
    if len(set(given)) < len(given):
        raise InputError("choices must differ from each other.", param="choices")
    return list(given)


def read_json_schema(given: Any) -> str:
    """Read a schema: JSON text, an object, a pydantic model class, or "object" for any JSON object."""
    if hasattr(given, "model_json_schema"):
        given = given.model_json_schema()
    if given == "object":
        given = {"type": "object"}
    schema = read_json(given, "json_schema") if isinstance(given, str) else given
    if not isinstance(schema, Mapping | bool):
        raise InputError("json_schema must be a JSON schema, an object.", param="json_schema")
    return write_json(schema, "json_schema")


def write_json(value: Any, name: str) -> str:
    """Write the value of an option as JSON text."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{name} must be plain JSON.", param=name) from None


def read_json(text: str, name: str) -> Any:
    """Read the JSON text of an option."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{name} is not JSON.", param=name) from None


def rewrite_pattern(text: str, param: str, *, quoted: bool = False) -> str:
    """Rewrite a user's expression so that it matches a whole answer; ``quoted``: the inside of a JSON string.

    ``^`` in front and ``$`` behind say nothing more about a whole answer and are dropped. What depends on its
    surroundings or on memory is refused by name.
    """
    text = text.removeprefix("^")
    if text.endswith("$") and (len(text) - len(text[:-1].rstrip("\\"))) % 2 == 1:
        text = text[:-1]
    dot_matches_line_end = any(match.lastgroup == "flags" for match in PARTS.finditer(text))
    any_letter = f"[^{ESCAPED if quoted else ''}{SENTINEL}]"
    narrow = NARROW | (IN_STRINGS if quoted else {})
    wide = WIDE | {"D": f"[^{narrow['d']}]", "W": f"[^{narrow['w']}]"}
    narrow = {name: f"[{each}&&{any_letter}]" if name.isupper() else each for name, each in narrow.items()} | PLAIN

    def rewrite(match: re.Match[str]) -> str:
        kind, part = str(match.lastgroup), match[0]
        if kind in REFUSED:
            raise InputError(
                f"The expression has {REFUSED[kind]}, {part!r}, which cannot be used here.",
                hint="An expression describes the whole answer; write it without.",
                param=param,
            )
        if kind == "dot":
            return any_letter if dot_matches_line_end else rf"[[^\n]&&{any_letter}]"
        if kind == "negated":
            return f"[{expand_escapes(part, wide)}&&{any_letter}]"
        return expand_escapes(part, narrow) if kind in ("class", "escape") else part

    return PARTS.sub(rewrite, text)


def expand_escapes(text: str, names: dict[str, str]) -> str:
    """Expand escape sequences."""
    return re.sub(r"\\(.)", lambda match: names.get(match[1], match[0]), text, flags=re.DOTALL)
