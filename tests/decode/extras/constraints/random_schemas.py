"""Random schemas: sensible, odd and wrong ones, of every keyword that the translation knows."""

from __future__ import annotations

from hypothesis import strategies as st

TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"]
small = st.integers(0, 3)
odd = st.sampled_from([None, True, -1, 1.5, "x", [], {}, [1], {"a": 1}])
names = st.sampled_from(["a", "b", 'c"d'])
plain = st.one_of(st.none(), st.booleans(), st.integers(-3, 30), st.sampled_from([1.0, 2.5]), names)
constants = plain | st.lists(plain, max_size=2) | st.dictionaries(names, plain, max_size=2)


def mostly(usual: st.SearchStrategy) -> st.SearchStrategy:
    """Now and then something that does not belong there."""
    return st.integers(0, 11).flatmap(lambda number: odd if number == 0 else usual)


def keywords(inner: st.SearchStrategy) -> dict[str, st.SearchStrategy]:
    branches = st.lists(inner, min_size=1, max_size=2)
    found = {
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), max_size=2),
        "enum": st.lists(constants, max_size=3),
        "const": constants,
        "anyOf": branches,
        "oneOf": branches,
        "allOf": branches,
        "$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/x"]),
        "properties": st.dictionaries(names, inner, max_size=2),
        "required": st.lists(names, max_size=2),
        "additionalProperties": st.booleans() | inner,
        "items": st.booleans() | inner,
        "prefixItems": st.lists(inner, max_size=2),
        "pattern": st.sampled_from(["[a-z]+", "^a?b$", "a|b"]),
        "format": st.sampled_from(["date", "ipv4", "what"]),
        "not": inner,
        "$defs": st.fixed_dictionaries({"x": inner}),
    }
    counts = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"]
    bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
    return {name: mostly(each) for name, each in (found | dict.fromkeys(counts + bounds, small)).items()}


def schema_of(inner: st.SearchStrategy) -> st.SearchStrategy:
    every = keywords(inner)
    some = st.lists(st.sampled_from(sorted(every)), max_size=3, unique=True)
    typed = st.sampled_from(TYPES).map(lambda kind: {"type": kind})
    return some.flatmap(lambda chosen: st.fixed_dictionaries({name: every[name] for name in chosen})) | typed


schemas = st.recursive(st.sampled_from(TYPES).map(lambda kind: {"type": kind}), schema_of, max_leaves=5)
