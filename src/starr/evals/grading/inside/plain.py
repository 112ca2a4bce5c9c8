"""Values as plain data: what crosses between the program and its judge.

A value is JSON, and a container that JSON lacks is an object with one key, its type. ``decode`` builds the exact
built-in types and nothing else, so that no object with methods of its own ever arrives: what is not plain stays where
it is and crosses as a name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

END = ""  # the name of a call that does nothing, the last one
CONTAINERS = {"tuple": tuple, "set": set, "frozenset": frozenset}


def encode(value: Any, name: Callable[[Any], str]) -> Any:
    """A value as JSON; ``name`` gives the name of anything that is not plain, or raises TypeError."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [encode(v, name) for v in value]
    if isinstance(value, dict):
        return {"dict": [[encode(k, name), encode(v, name)] for k, v in value.items()]}
    for word, kind in CONTAINERS.items():
        if isinstance(value, kind):
            return {word: [encode(v, name) for v in value]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return {"name": name(value)}


def decode(data: Any, find: Callable[[str], Any]) -> Any:
    """The value; ``find`` gives what a name stands for. Data of another form is a ValueError, TypeError or KeyError."""
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if isinstance(data, list):
        return [decode(v, find) for v in data]
    ((kind, inner),) = data.items()
    if kind == "dict":
        return {decode(k, find): decode(v, find) for k, v in inner}
    if kind == "complex":
        return complex(*inner)
    if kind == "bytes":
        return bytes.fromhex(inner)
    if kind == "name":
        return find(inner)
    return CONTAINERS[kind](decode(v, find) for v in inner)
