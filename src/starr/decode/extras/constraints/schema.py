"""A JSON schema as a regular expression. A keyword that the expression cannot keep is refused by name.

The expression may say less than the schema, never more: keys come in the order of the schema, undeclared keys are
not written, after ``:`` and ``,`` comes at most one space. So every answer validates.

``outlines_core.json_schema.build_regex_from_schema`` is not used, because texts that it accepts may not validate:

- It drops the bounds of integers and numbers, ``multipleOf``, ``uniqueItems``, ``minProperties`` and ``maxProperties``
  beside ``properties``, required keys that are not declared, ``minItems`` beside ``prefixItems``, ``not`` and ``if``
  beside a type, the type beside ``enum``, ``const`` and ``$ref``, rules beside ``anyOf``, a pattern beside a length.
- It joins the parts of ``allOf`` one after another, and lets the branches of ``oneOf`` overlap.
- A pattern may write a quote or a backslash into a string, and ``^a|b$`` splits around the quotes of the string.
- Dates may be 2024-02-31, times may have ``\\$`` before the fraction, e-mail addresses may have control characters.
- Schemas that leave a value open (``{}``, ``{"type": "object"}``, arrays without ``items``) take too long to compile.

The library accepts more blanks, and references to the schema itself down to a fixed depth. Tests run both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starr.decode.extras.constraints.expression import SENTINEL, rewrite_pattern
from starr.errors import InputError

MAX_DEPTH = 8  # schemas inside one another
MAX_NODES = 4_000
MAX_EXPRESSION = 400_000
MAX_DIGITS = 400  # of a bound: every float has fewer
FREE_DEPTH = 2  # containers of a value that the schema leaves open
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
KEYWORDS = {
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
}
REFUSED = {
    *("not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "multipleOf"),
    *("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies"),
    *("unevaluatedItems", "unevaluatedProperties", "additionalItems", "$dynamicRef", "$recursiveRef"),
}
COMPOSITIONS = ("$ref", "allOf", "anyOf", "oneOf", "enum", "const")

BLANK = " ?"
LETTER = rf'(?:[^"\\\x00-\x1f\x7f{SENTINEL}]|\\["\\/bfnrt])'
STRING = f'"{LETTER}*"'
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


def refuse(what: str, hint: str = "") -> InputError:
    """Build the error that says what a schema cannot have."""
    return InputError(f"json_schema: {what}.", hint=hint, param="json_schema")


@dataclass(slots=True)
class Translator:
    """Translates one schema. ``patterns`` are the expressions that stand inside JSON strings."""

    root: Any
    patterns: list[str] = field(default_factory=list)
    nodes: int = 0

    def translate(self, schema: Any, depth: int = 0) -> str:
        """Translate a schema that stands ``depth`` schemas deep."""
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise refuse(f"it is nested more than {MAX_DEPTH} deep, or refers to itself", "Flatten it.")
        if schema is True or schema == {}:
            return write_any_value(FREE_DEPTH)
        if not isinstance(schema, Mapping):
            raise refuse(f"a schema must be an object, got {json.dumps(schema)[:40]}")
        wrong = sorted(REFUSED & schema.keys())
        if wrong:
            raise refuse(
                f"{wrong[0]} cannot be kept by an automaton here", "Leave it out and check the answer yourself."
            )
        name = next((name for name in COMPOSITIONS if name in schema), None)
        text = self.translate_composition(schema, name, depth) if name else self.translate_types(schema, depth)
        if len(text) > MAX_EXPRESSION or self.nodes > MAX_NODES:
            raise refuse("it is too large", "Ask for less at once.")
        return text

    def translate_composition(self, schema: Mapping[str, Any], name: str, depth: int) -> str:
        """Translate a reference, alternatives or constants. A type may stand beside the last two, and no other rule."""
        rules = set(COMPOSITIONS).union(*KEYWORDS.values(), {"type"} if name == "$ref" else ())
        beside = sorted(rules & schema.keys() - {name})
        if beside:
            raise refuse(f"{beside[0]} beside {name} is not supported", "Write it inside.")
        if name == "$ref":
            return self.translate(self.follow(schema), depth + 1)
        if name in ("enum", "const"):
            types = read_types(schema["type"]) if "type" in schema else None
            return write_constants(schema["enum"] if name == "enum" else [schema["const"]], types)
        branches = schema[name]
        if not isinstance(branches, list) or not branches:
            raise refuse(f"{name} must be a list of schemas")
        if name == "allOf" and len(branches) > 1:
            raise refuse("allOf of several schemas is not supported", "Merge them.")
        if name == "oneOf" and not exclude_each_other([self.follow(branch) for branch in branches]):
            raise refuse("oneOf is supported for branches of different types or constants", "Use anyOf.")
        return join_alternatives([self.translate(add_type(branch, schema), depth + 1) for branch in branches])

    def follow(self, schema: Any) -> Any:
        """Return what a schema refers to within the root, or the schema itself where it is no reference."""
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return schema
        reference, target = schema["$ref"], self.root
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise refuse(f"only references within the schema are followed, got {reference!r}")
        for part in reference[1:].split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or part not in target:
                raise refuse(f"there is nothing at {reference!r}")
            target = target[part]
        return target

    def translate_types(self, schema: Mapping[str, Any], depth: int) -> str:
        """Translate a schema with one type, several types, or only the keywords of a type."""
        implied = [kind for kind, words in KEYWORDS.items() if words & schema.keys()]
        if "type" not in schema and not implied:  # only annotations
            return write_any_value(FREE_DEPTH)
        types = read_types(schema["type"]) if "type" in schema else implied
        return join_alternatives([self.translate_type(schema, kind, depth) for kind in types])

    def translate_type(self, schema: Mapping[str, Any], kind: str, depth: int) -> str:
        """Translate a schema as one type."""
        match kind:
            case "object":
                return self.translate_object(schema, depth)
            case "array":
                return self.translate_array(schema, depth)
            case "string":
                return self.translate_string(schema)
            case "integer":
                return translate_integer(schema)
        bounds = sorted(KEYWORDS["integer"] & schema.keys())
        if kind == "number" and bounds:
            raise refuse(f"{bounds[0]} is supported for integers only", "Leave it out and check the answer yourself.")
        return {"number": NUMBER, "boolean": "(?:true|false)", "null": "null"}[kind]

    def translate_array(self, schema: Mapping[str, Any], depth: int) -> str:
        """Translate an array with its bounds. All ``prefixItems`` come first, and nothing comes after them."""
        low, high = read_count(schema, "minItems") or 0, read_count(schema, "maxItems")
        listed, rest = schema.get("prefixItems", []), schema.get("items", True)
        if not isinstance(listed, list):
            raise refuse("prefixItems must be a list of schemas")
        if not listed:
            none = rest is False or high == 0
            return rf"\[{repeat_item('' if none else self.translate(rest, depth + 1), low, 0 if none else high)}\]"
        if rest is not False and "items" in schema:
            raise refuse("items beside prefixItems must be false")
        if low > len(listed) or (high is not None and high < len(listed)):
            raise refuse("minItems and maxItems must fit prefixItems")
        return rf"\[{f',{BLANK}'.join(self.translate(each, depth + 1) for each in listed)}\]"

    def translate_object(self, schema: Mapping[str, Any], depth: int) -> str:
        """Translate an object: its declared keys in their order, or a map of any keys where none is declared."""
        declared, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(declared, Mapping) or not isinstance(required, list):
            raise refuse("properties must be an object and required a list")
        if not all(isinstance(name, str) for name in required):
            raise refuse("required must be a list of texts")
        others = schema.get("additionalProperties", True)
        missing = {name: others for name in required if name not in declared}
        if missing and others is False:
            raise refuse(f"{next(iter(missing))!r} is required, and additionalProperties leaves it out")
        declared = dict(declared) | missing
        low, high = read_count(schema, "minProperties") or 0, read_count(schema, "maxProperties")
        if declared:
            if low > len(set(required)) or (high is not None and high < len(declared)):
                raise refuse("minProperties and maxProperties must follow from required and properties")
            members = [
                (f"{write_constant(name)}:{BLANK}{self.translate(each, depth + 1)}", name in required)
                for name, each in declared.items()
            ]
            return rf"\{{{join_members(members)}\}}"
        if low > 1:  # keys may repeat in the text
            raise refuse("minProperties above 1 is not supported without properties")
        if others is False or high == 0:
            return rf"\{{{repeat_item('', low, 0)}\}}"
        value = write_any_value(FREE_DEPTH - 1) if others is True else self.translate(others, depth + 1)
        return rf"\{{{repeat_item(f'{STRING}:{BLANK}{value}', low, high)}\}}"

    def translate_string(self, schema: Mapping[str, Any]) -> str:
        """Translate a string: its length, its pattern or its format."""
        named = [name for name in ("pattern", "format") if name in schema]
        low, high = read_count(schema, "minLength") or 0, read_count(schema, "maxLength")
        if not named:
            return f'"{LETTER}{write_repeat(low, high)}"'
        if len(named) == 2 or low or high is not None:
            raise refuse(
                f"{named[0]} beside another rule of the string is not supported", "Put the length into the pattern."
            )
        given = schema[named[0]]
        if named == ["format"]:
            if given not in list(FORMATS):
                raise refuse(f"format {given!r} is not supported", f"Known: {', '.join(sorted(FORMATS))}.")
            return f'"{FORMATS[given]}"'
        if not isinstance(given, str):
            raise refuse("pattern must be a text")
        self.patterns.append(rewrite_pattern(given, "json_schema", quoted=True))
        return f'"(?:{self.patterns[-1]})"'


def add_type(branch: Any, schema: Mapping[str, Any]) -> Any:
    """Return a branch with the type that stands beside all branches."""
    if "type" not in schema or not (branch is True or isinstance(branch, Mapping)):
        return branch
    own = {} if branch is True else branch
    if "type" not in own:
        return {"type": schema["type"], **own}
    outer = read_types(schema["type"])
    if any(kind not in outer and not (kind == "integer" and "number" in outer) for kind in read_types(own["type"])):
        raise refuse("the type of a branch must be one of those beside it")
    return branch


def read_types(given: Any) -> list[str]:
    """Read the types that a schema names."""
    types = given if isinstance(given, list) else [given]
    wrong = [kind for kind in types if kind not in TYPES]
    if wrong or not types:
        raise refuse(f"type must be one of {', '.join(TYPES)}, got {json.dumps(wrong)[:40]}")
    return types


def read_count(schema: Mapping[str, Any], name: str) -> int | None:
    """Read a bound of a length; None where the schema has none."""
    count = schema.get(name, 0)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise refuse(f"{name} must be a whole number from 0 on, got {json.dumps(count)[:40]}")
    return count if name in schema else None


def join_alternatives(parts: Sequence[str]) -> str:
    """Write one of several expressions."""
    return f"(?:{'|'.join(dict.fromkeys(parts))})"


def write_repeat(low: int, high: int | None) -> str:
    """Write a repetition count."""
    if high is not None and high < low:
        raise refuse(f"at least {low} and at most {high} is not possible")
    return f"{{{low},{'' if high is None else high}}}"


def repeat_item(item: str, low: int = 0, high: int | None = None) -> str:
    """Write from ``low`` to ``high`` items with commas between them."""
    write_repeat(low, high)
    if high == 0:
        return ""
    items = f"{item}(?:,{BLANK}{item}){write_repeat(max(low - 1, 0), None if high is None else high - 1)}"
    return items if low else f"(?:{items})?"


def join_members(members: list[tuple[str, bool]]) -> str:
    """Join the members (expression, required) of an object with commas between those that are present."""
    anchor = next((i for i, (_, required) in enumerate(members) if required), None)
    if anchor is None:
        return f"(?:{'|'.join(text + append_members(members[i + 1 :]) for i, (text, _) in enumerate(members))})?"
    before = "".join(f"(?:{text},{BLANK})?" for text, _ in members[:anchor])
    return before + members[anchor][0] + append_members(members[anchor + 1 :])


def append_members(members: list[tuple[str, bool]]) -> str:
    """Write the members after one that is present."""
    return "".join(f",{BLANK}{text}" if required else f"(?:,{BLANK}{text})?" for text, required in members)


def write_any_value(depth: int) -> str:
    """Write any JSON value with at most ``depth`` containers inside one another."""
    plain = [STRING, NUMBER, "true", "false", "null"]
    if depth == 0:
        return join_alternatives(plain)
    inner = write_any_value(depth - 1)
    containers = [rf"\[{repeat_item(inner)}\]", rf"\{{{repeat_item(f'{STRING}:{BLANK}{inner}')}\}}"]
    return join_alternatives([*plain, *containers])


def write_constant(value: Any) -> str:
    """Write one JSON value literally."""
    return re.escape(json.dumps(value, ensure_ascii=False))


def write_constants(values: Any, types: list[str] | None) -> str:
    """Write one of the values that have one of the types; None is any type."""
    if not isinstance(values, list) or not values:
        raise refuse("enum must be a list of values")
    kept = [each for each in values if types is None or any(has_type(each, kind) for kind in types)]
    if not kept:
        raise refuse("no value of enum is of the type")
    return join_alternatives([write_constant(each) for each in kept])


def has_type(value: Any, kind: str) -> bool:
    """Test whether a constant has a JSON type."""
    if isinstance(value, bool):
        return kind == "boolean"
    classes: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    return value is None if kind == "null" else kind in classes and isinstance(value, classes[kind])


def exclude_each_other(branches: list[Any]) -> bool:
    """Test whether no value fits two branches, as far as types, or constants of one required key, show it."""
    if not all(isinstance(branch, Mapping) for branch in branches):
        return False
    types = [branch.get("type") for branch in branches]
    if all(isinstance(kind, str) for kind in types):
        if len(set(types)) == len(types) and not {"integer", "number"} <= set(types):
            return True
        if set(types) == {"object"} and have_distinct_key(branches):
            return True
    return are_disjoint([read_constants(branch) for branch in branches])


def have_distinct_key(branches: list[Any]) -> bool:
    """Test whether a key that every branch requires has constants that all differ."""
    listed = [(branch.get("required", []), branch.get("properties", {})) for branch in branches]
    if not all(isinstance(required, list) and isinstance(declared, Mapping) for required, declared in listed):
        return False
    shared = [key for key in listed[0][0] if isinstance(key, str) and all(key in required for required, _ in listed)]
    return any(are_disjoint([read_constants(declared.get(key)) for _, declared in listed]) for key in shared)


def read_constants(schema: Any) -> list[str] | None:
    """Read the constants of a schema, equal ones as equal texts; None where it allows other values."""
    if not isinstance(schema, Mapping):
        return None
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if not isinstance(values, list):
        return None
    return [json.dumps(json.loads(json.dumps(each), parse_float=read_number), sort_keys=True) for each in values]


def read_number(text: str) -> int | float:
    """Read a number as JSON schema sees it: 1.0 is 1."""
    number = float(text)
    return int(number) if number.is_integer() else number


def are_disjoint(listed: list[list[str] | None]) -> bool:
    """Test whether no constant is in two of the lists; False where a list is missing."""
    every = [text for texts in listed for text in texts or []]
    return None not in listed and len(set(every)) == len(every)


def translate_integer(schema: Mapping[str, Any]) -> str:
    """Translate an integer with its bounds."""
    lows, highs = read_bounds(schema, "minimum", 1), read_bounds(schema, "maximum", -1)
    low, high = max(lows, default=None), min(highs, default=None)
    if low is None and high is None:
        return INTEGER
    if low is not None and high is not None and low > high:
        raise refuse(f"no integer is from {low} to {high}")
    return write_integer_range(low, high)


def read_bounds(schema: Mapping[str, Any], name: str, step: int) -> list[int]:
    """Read a bound and its exclusive form, both as inclusive bounds."""
    bounds = []
    for key, shift in ((name, 0), (f"exclusive{name.capitalize()}", step)):
        bound = schema.get(key, 0)
        if isinstance(bound, bool) or not isinstance(bound, int | float) or bound % 1 != 0:
            raise refuse(f"{key} of an integer must be a whole number, got {json.dumps(bound)[:40]}")
        if abs(bound) >= 10**MAX_DIGITS:
            raise refuse(f"{key} may have {MAX_DIGITS} digits")
        bounds += [int(bound) + shift] if key in schema else []
    return bounds


def write_integer_range(low: int | None, high: int | None) -> str:
    """Write the integers from ``low`` to ``high``, both inclusive, None being no bound; no leading zeros, no -0."""
    parts = []
    if low is None or low < 0:
        largest = 1 if high is None or high > -1 else -high
        parts.append(f"-(?:{write_natural_range(largest, None if low is None else -low)})")
    if high is None or high >= 0:
        parts.append(write_natural_range(max(low or 0, 0), high))
    return join_alternatives(parts)


def write_natural_range(low: int, high: int | None) -> str:
    """Write the integers from ``low`` to ``high``, where 0 <= low."""
    if high is None:
        digits = len(str(low))
        return f"{write_natural_range(low, 10**digits - 1)}|[1-9][0-9]{{{digits},}}"
    parts = []
    while low <= high:
        top = min(high, 10 ** len(str(low)) - 1)
        parts += list_ranges(str(low), str(top))
        low = top + 1
    return "|".join(parts)


def list_ranges(low: str, high: str) -> list[str]:
    """List alternatives for numbers of equally many digits; their count grows with the digits, not with the range."""
    if not low:
        return [""]
    rest, first, last = len(low) - 1, int(low[0]), int(high[0])
    if first == last:
        return [low[0] + tail for tail in list_ranges(low[1:], high[1:])]
    below: list[str] = []
    above: list[str] = []
    if low[1:].strip("0"):
        below = [low[0] + tail for tail in list_ranges(low[1:], "9" * rest)]
        first += 1
    if high[1:].strip("9"):
        above = [high[0] + tail for tail in list_ranges("0" * rest, high[1:])]
        last -= 1
    middle = [f"[{first}-{last}]" + (f"[0-9]{{{rest}}}" if rest else "")] if first <= last else []
    return below + middle + above
