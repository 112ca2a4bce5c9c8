"""A JSON schema as a regular expression. What it cannot say is refused by its keyword, never passed over.

The expression may say less than the schema, never more: keys come in the order of the schema, undeclared keys are
not written, after ``:`` and ``,`` comes at most one space. So every answer validates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starr.decode.extras.constraints.constants import constants, exclusive
from starr.decode.extras.constraints.containers import FREE_DEPTH, array_of, free_value, object_of
from starr.decode.extras.constraints.pieces import any_of, refuse
from starr.decode.extras.constraints.scalars import NUMBER, integer_of, string_of

DEEPEST = 8  # schemas inside one another
MOST_NODES = 4_000
MOST_EXPRESSION = 400_000
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
    kind = {"type"} if name == "$ref" else set()
    beside = sorted((set(WHOLE) | EVERY | kind) & schema.keys() - {name})
    if beside:
        raise refuse(f"{beside[0]} beside {name} is not supported", "Write it inside.")
    if name == "$ref":
        return value(work, resolve(work.root, schema["$ref"]), depth + 1)
    if name in ("enum", "const"):
        return constants(
            schema["enum"] if name == "enum" else [schema["const"]],
            kinds_of(schema["type"]) if "type" in schema else None,
        )
    branches = schema[name]
    if not isinstance(branches, list) or not branches:
        raise refuse(f"{name} must be a list of schemas")
    if name == "allOf" and len(branches) > 1:
        raise refuse("allOf of several schemas is not supported", "Merge them.")
    if name == "oneOf" and not exclusive([followed(work.root, branch) for branch in branches]):
        raise refuse("oneOf is supported for branches of different types or constants", "Use anyOf.")
    return any_of([value(work, narrowed(schema, branch), depth + 1) for branch in branches])


def narrowed(schema: Mapping[str, Any], branch: Any) -> Any:
    """A branch with the type that stands beside all of them."""
    if "type" not in schema or not (branch is True or isinstance(branch, Mapping)):
        return branch
    own = {} if branch is True else branch
    if "type" not in own:
        return {"type": schema["type"], **own}
    outer = kinds_of(schema["type"])
    if any(kind not in outer and not (kind == "integer" and "number" in outer) for kind in kinds_of(own["type"])):
        raise refuse("the type of a branch must be one of those beside it")
    return branch


def followed(root: Any, branch: Any) -> Any:
    """What a branch refers to, or the branch itself."""
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


def typed(work: Translation, schema: Mapping[str, Any], depth: int) -> str:
    """A schema with a type, several types, or the type that its keywords belong to."""
    implied = [kind for kind, words in SAID.items() if words & schema.keys()]
    if "type" not in schema and not implied:  # only annotations
        return free_value(FREE_DEPTH)
    kinds = kinds_of(schema["type"]) if "type" in schema else implied
    return any_of([one_type(work, schema, kind, depth) for kind in kinds])


def kinds_of(given: Any) -> list[str]:
    """The types that a schema names."""
    kinds = given if isinstance(given, list) else [given]
    wrong = [kind for kind in kinds if kind not in TYPES]
    if wrong or not kinds:
        raise refuse(f"type must be one of {', '.join(TYPES)}, got {json.dumps(wrong)[:40]}")
    return kinds


def one_type(work: Translation, schema: Mapping[str, Any], kind: str, depth: int) -> str:
    """The expression of a schema as one type."""
    if kind in ("object", "array"):
        made = object_of if kind == "object" else array_of
        return made(schema, lambda inside: value(work, inside, depth + 1))
    if kind == "string":
        return string_of(schema, work.patterns)
    if kind == "integer":
        return integer_of(schema)
    bounded = sorted(SAID["integer"] & schema.keys())
    if kind == "number" and bounded:
        raise refuse(f"{bounded[0]} is supported for integers only", "Leave it out and check the answer yourself.")
    return {"number": NUMBER, "boolean": "(?:true|false)", "null": "null"}[kind]
