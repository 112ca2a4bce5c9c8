"""A JSON schema as a regular expression. What it cannot say is refused by its keyword, never passed over.

The expression may say less than the schema, never more: keys come in the order of the schema, undeclared keys are
not written, after ``:`` and ``,`` comes at most one space. So every answer validates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starr.decode.extras.constraints.numbers import integer_range
from starr.decode.extras.constraints.pattern import SENTINEL, whole_match
from starr.errors import InputError

DEEPEST = 8  # schemas inside one another
FREE_DEPTH = 2  # containers of a value that the schema leaves open
MOST_NODES = 4_000
MOST_EXPRESSION = 400_000
BLANK = " ?"
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
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
SAID = {
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
}
EVERY = set().union(*SAID.values())
UNSAID = {
    *("not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems", "multipleOf"),
    *("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies"),
    *("unevaluatedItems", "unevaluatedProperties", "additionalItems", "$dynamicRef", "$recursiveRef"),
}
WHOLE = ("$ref", "allOf", "anyOf", "oneOf", "enum", "const")


@dataclass(slots=True)
class Translation:
    """The expression so far. ``patterns`` are those that stand inside JSON strings."""

    root: Any
    text: str = ""
    patterns: list[str] = field(default_factory=list)
    nodes: int = 0


def any_object() -> dict[str, Any]:
    """The schema of any JSON object."""
    return {"type": "object"}


def schema_expression(root: Any) -> Translation:
    """The translation of a whole schema, with ``text`` filled in."""
    work = Translation(root)
    work.text = value(work, root, 0)
    return work


def refuse(what: str, hint: str = "") -> InputError:
    return InputError(f"json_schema: {what}.", hint=hint, param="json_schema")


def value(work: Translation, schema: Any, depth: int) -> str:
    """The expression of one schema that stands ``depth`` schemas deep."""
    work.nodes += 1
    if depth > DEEPEST:
        raise refuse(f"it is nested more than {DEEPEST} deep, or refers to itself", "Flatten it.")
    if schema is True or schema == {}:
        return free_value(FREE_DEPTH)
    if not isinstance(schema, Mapping):
        raise refuse(f"a schema must be an object, got {json.dumps(schema)[:40]}")
    wrong = sorted(UNSAID & schema.keys())
    if wrong:
        raise refuse(f"{wrong[0]} cannot be kept by an automaton here", "Leave it out and check the answer yourself.")
    whole = [name for name in WHOLE if name in schema]
    found = composed(work, schema, whole[0], depth) if whole else typed(work, schema, depth)
    if len(found) > MOST_EXPRESSION or work.nodes > MOST_NODES:
        raise refuse("it is too large", "Ask for less at once.")
    return found


def composed(work: Translation, schema: Mapping[str, Any], name: str, depth: int) -> str:
    """References, alternatives and constants; beside them only annotations and, but for references, a type."""
    beside = sorted((set(WHOLE) | EVERY) & schema.keys() - {name})
    if beside:
        raise refuse(f"{beside[0]} beside {name} is not supported", "Write it inside.")
    if name == "$ref":
        return value(work, resolve(work.root, schema["$ref"]), depth + 1)
    if name in ("enum", "const"):
        return constants(schema["enum"] if name == "enum" else [schema["const"]], schema.get("type"))
    branches = schema[name]
    if not isinstance(branches, list) or not branches:
        raise refuse(f"{name} must be a list of schemas")
    if name == "allOf" and len(branches) > 1:
        raise refuse("allOf of several schemas is not supported", "Merge them.")
    if name == "oneOf" and not exclusive([followed(work.root, branch) for branch in branches]):
        raise refuse("oneOf is supported for branches of different types or constants", "Use anyOf.")
    kind = {"type": schema["type"]} if "type" in schema else {}
    return any_of([value(work, {**kind, **b} if isinstance(b, Mapping) else b, depth + 1) for b in branches])


def any_of(parts: Sequence[str]) -> str:
    return f"(?:{'|'.join(dict.fromkeys(parts))})"


def followed(root: Any, branch: Any) -> Any:
    return resolve(root, branch["$ref"]) if isinstance(branch, Mapping) and "$ref" in branch else branch


def resolve(root: Any, reference: Any) -> Any:
    """The part of the schema that a local reference names."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise refuse(f"only references within the schema are followed, got {reference!r}")
    found = root
    for part in reference[1:].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or part not in found:
            raise refuse(f"there is nothing at {reference!r}")
        found = found[part]
    return found


def exclusive(branches: list[Any]) -> bool:
    """Whether no value fits two branches, as far as types, or constants of one required key, show it."""
    if not all(isinstance(branch, Mapping) for branch in branches):
        return False
    kinds = [branch.get("type") for branch in branches]
    if all(isinstance(kind, str) for kind in kinds):
        if len(set(kinds)) == len(kinds) and not {"integer", "number"} <= set(kinds):
            return True
        return all(kind == "object" for kind in kinds) and told_apart(branches)
    listed = [constants_of(branch) for branch in branches]
    return differ(listed)


def told_apart(branches: list[Any]) -> bool:
    """Whether a key that every branch requires has constants that all differ."""
    shared = set.intersection(*(set(branch.get("required", [])) for branch in branches))
    for key in shared:
        if differ([constants_of(branch.get("properties", {}).get(key, {})) for branch in branches]):
            return True
    return False


def constants_of(schema: Any) -> list[str] | None:
    if not isinstance(schema, Mapping) or not {"const", "enum"} & schema.keys():
        return None
    return [json.dumps(each, sort_keys=True) for each in schema.get("enum", [schema.get("const")])]


def differ(listed: list[list[str] | None]) -> bool:
    every = [text for texts in listed for text in texts or []]
    return None not in listed and len(set(every)) == len(every)


def constants(values: Any, kind: Any) -> str:
    kinds = [kind] if isinstance(kind, str) else kind
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


def typed(work: Translation, schema: Mapping[str, Any], depth: int) -> str:
    """A schema with a type, several types, or the type that its keywords belong to."""
    kinds = schema.get("type")
    if kinds is None:
        kinds = [kind for kind, words in SAID.items() if words & schema.keys()]
        if not kinds:  # only annotations
            return free_value(FREE_DEPTH)
    kinds = [kinds] if isinstance(kinds, str) else kinds
    wrong = [kind for kind in kinds if kind not in TYPES]
    if wrong or not kinds:
        raise refuse(f"type must be one of {', '.join(TYPES)}, got {json.dumps(wrong)}")
    return any_of([one_type(work, schema, kind, depth) for kind in kinds])


def one_type(work: Translation, schema: Mapping[str, Any], kind: str, depth: int) -> str:
    if kind == "object":
        return object_of(work, schema, depth)
    if kind == "array":
        return array_of(work, schema, depth)
    if kind == "string":
        return string_of(work, schema)
    if kind == "integer":
        return integer_of(schema)
    bounded = sorted(SAID["integer"] & schema.keys())
    if kind == "number" and bounded:
        raise refuse(f"{bounded[0]} is supported for integers only", "Leave it out and check the answer yourself.")
    return {"number": NUMBER, "boolean": "(?:true|false)", "null": "null"}[kind]


def count(schema: Mapping[str, Any], name: str, default: int | None) -> int | None:
    found = schema.get(name, default)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise refuse(f"{name} must be a whole number from 0 on, got {json.dumps(found)[:40]}")
    return found


def times(low: int, high: int | None) -> str:
    if high is not None and high < low:
        raise refuse(f"at least {low} and at most {high} is not possible")
    return f"{{{low},{'' if high is None else high}}}"


def string_of(work: Translation, schema: Mapping[str, Any]) -> str:
    named = [name for name in ("pattern", "format") if name in schema]
    low, high = count(schema, "minLength", 0), count(schema, "maxLength", None)
    assert low is not None
    if not named:
        return f'"{LETTER}{times(low, high)}"'
    if len(named) == 2 or low or high is not None:
        raise refuse(
            f"{named[0]} beside another rule of the string is not supported", "Put the length into the pattern."
        )
    if named == ["format"]:
        if schema["format"] not in FORMATS:
            known = ", ".join(sorted(FORMATS))
            raise refuse(f"format {schema['format']!r} is not supported", f"Known: {known}.")
        return f'"{FORMATS[schema["format"]]}"'
    if not isinstance(schema["pattern"], str):
        raise refuse("pattern must be a text")
    inner = whole_match(schema["pattern"], "json_schema")
    work.patterns.append(inner)
    return f'"(?:{inner})"'


def integer_of(schema: Mapping[str, Any]) -> str:
    bounds: list[int | None] = []
    for name, open_name, step in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        sides = [(schema.get(name), 0), (schema.get(open_name), step)]
        found = []
        for bound, shift in sides:
            if bound is None:
                continue
            if isinstance(bound, bool) or not isinstance(bound, int | float) or bound != int(bound):
                raise refuse(f"{name} of an integer must be a whole number, got {json.dumps(bound)[:40]}")
            found.append(int(bound) + shift)
        bounds.append(None if not found else max(found) if step > 0 else min(found))
    low, high = bounds
    if low is None and high is None:
        return INTEGER
    if low is not None and high is not None and low > high:
        raise refuse(f"no integer is from {low} to {high}")
    return integer_range(low, high)


def array_of(work: Translation, schema: Mapping[str, Any], depth: int) -> str:
    """Bounded by minItems and maxItems; ``prefixItems`` come first, and all of them."""
    low, high = count(schema, "minItems", 0), count(schema, "maxItems", None)
    assert low is not None
    first = [value(work, each, depth + 1) for each in schema.get("prefixItems", [])]
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
    item = value(work, rest, depth + 1)
    more = f"{item}(?:,{BLANK}{item}){times(max(low - 1, 0), None if high is None else high - 1)}"
    times(low, high)
    return rf"\[{more}\]" if low else rf"\[(?:{more})?\]"


def object_of(work: Translation, schema: Mapping[str, Any], depth: int) -> str:
    """Declared keys in their order, those not required optional; without declared keys a map of any keys."""
    declared = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(declared, Mapping) or not isinstance(required, list):
        raise refuse("properties must be an object and required a list")
    declared = dict(declared) | {name: True for name in required if name not in declared}
    low, high = count(schema, "minProperties", 0), count(schema, "maxProperties", None)
    assert low is not None
    others = schema.get("additionalProperties", True)
    if not declared:
        return map_of(work, others, low, high, depth)
    if low > len(required) or (high is not None and high < len(declared)):
        raise refuse("minProperties and maxProperties must follow from required and properties")
    pairs = [
        (f"{key_of(name)}:{BLANK}{value(work, each, depth + 1)}", name in required) for name, each in declared.items()
    ]
    return rf"\{{{members(pairs)}\}}"


def key_of(name: str) -> str:
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
    return "".join(f",{BLANK}{text}" if needed else f"(?:,{BLANK}{text})?" for text, needed in pairs)


def map_of(work: Translation, others: Any, low: int, high: int | None, depth: int) -> str:
    """An object of any keys. Keys may repeat in the text, so more than one member cannot be demanded."""
    if low > 1:
        raise refuse("minProperties above 1 is not supported without properties")
    if others is False or high == 0:
        times(low, 0)
        return r"\{\}"
    inner = free_value(FREE_DEPTH - 1) if others is True else value(work, others, depth + 1)
    pair = f'"{LETTER}*":{BLANK}{inner}'
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
