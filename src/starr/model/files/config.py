"""Reading config.json: every value is checked when it is read, and a wrong one is named in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starr.errors import LoadError
from starr.model.network.shape import Shape

MOST = 2**24  # of any whole number in a config: layers, widths, vocabulary, context
LEAST_REAL, MOST_REAL = 1e-12, 1e12
FILE_BYTES = 64 << 20  # of a text file; the largest tokenizers that were released have 35 MB
Config = Mapping[str, Any]


def read_text(path: Path) -> str:
    """The text in ``path``; LoadError if it is absent, unreadable, not UTF-8 or larger than FILE_BYTES."""
    if path.exists() and not path.is_file():
        raise LoadError(f"{path} is not a regular file.")
    try:
        size = path.stat().st_size
        if size > FILE_BYTES:
            raise LoadError(f"{path} has {size} bytes, more than {FILE_BYTES}.", hint="Is it another file?")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LoadError(f"{path.parent} has no {path.name}.", hint="A model folder needs it.") from None
    except (OSError, ValueError) as error:
        raise LoadError(f"{path} cannot be read: {error}.", hint="Copy or download it again.") from None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``; LoadError if it is absent, unreadable or not an object."""
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{path} is not JSON: {error}.", hint="Copy or download it again.") from None
    if not isinstance(data, dict):
        raise LoadError(f"{path} must hold a JSON object, not {type(data).__name__}.")
    return data


def read_whole(config: Config, key: str, default: int | None = None) -> int:
    """A whole number >= 1 under ``key``; null counts as absent, and absent takes ``default`` if there is one."""
    value = config.get(key)
    value = default if value is None else value
    if type(value) is not int or not 1 <= value <= MOST:
        raise LoadError(f"config.json: {key} must be a whole number from 1 to {MOST}, not {repr(value)[:40]}.")
    return value


def read_real(config: Config, key: str, most: float = MOST_REAL) -> float:
    """A number from LEAST_REAL to ``most`` under ``key``."""
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not LEAST_REAL <= value <= most:
        found = repr(value)[:40]
        raise LoadError(f"config.json: {key} must be a number from {LEAST_REAL:g} to {most:g}, not {found}.")
    return float(value)


def read_flag(config: Config, key: str) -> bool:
    """True or false under ``key``, which must be there."""
    value = config.get(key)
    if not isinstance(value, bool):
        raise LoadError(f"config.json: {key} must be true or false, not {value!r}.", hint="The model's card may say.")
    return value


def require(config: Config, rules: Mapping[str, object]) -> None:
    """Refuse variants that the transformer does not compute: a key may be absent, null or exactly the given value."""
    for key, only in rules.items():
        value = config.get(key)
        if value is not None and value != only:
            raise LoadError(f"config.json: {key}={value!r} is not supported, only {only!r} is.")


def read_token(config: Config, key: str, fallback: int | None, shape: Shape) -> int:
    """The token id under ``key`` (the first, where a list is given), else ``fallback``; always below vocab_size."""
    value = config.get(key)
    if isinstance(value, list) and value:
        value = value[0]
    value = fallback if value is None else value
    if type(value) is not int or not 0 <= value < shape.vocab_size:
        raise LoadError(f"config.json: {key} must be a token id below {shape.vocab_size}, not {value!r}.")
    return value


def check_shape(shape: Shape) -> Shape:
    """Return ``shape`` if its heads divide its width evenly."""
    uneven = shape.head_dim is None and shape.width % shape.heads
    if uneven or shape.rotary_width % 2 or shape.rotary_width > shape.head_width or shape.heads % shape.kv_heads:
        raise LoadError(
            f"config.json: {shape.heads} heads and {shape.kv_heads} K/V heads do not fit a width of {shape.width}.",
            hint="Heads must divide the width into even parts, and K/V heads must divide heads.",
        )
    return shape


def drop_repeats(*ids: int | None) -> tuple[int, ...]:
    """Return the ids in order, without None and repetitions."""
    return tuple(dict.fromkeys(i for i in ids if i is not None))
