"""What there is to choose from, for ``/v1/strategies``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from starr.decode.caches import caches
from starr.decode.strategies import strategies
from starr.named import text_form

NONE: Mapping[str, Any] = MappingProxyType({})


def described(served: Mapping[str, Any] = NONE) -> dict[str, Any]:
    """Strategies and caches with their papers, options and defaults, and what the server takes where none is named."""
    own = {name: value if plain(value) else text_form(value) for name, value in served.items()}
    found = {"data": [entry_of(e) for e in strategies()], "caches": [entry_of(e) for e in caches()]}
    return {"object": "list", **found, "defaults": own}


def plain(value: Any) -> bool:
    """Whether a value is JSON as it is; a strategy or a cache has a text form."""
    return value is None or isinstance(value, int | str)


def entry_of(entry: Any) -> dict[str, Any]:
    """One member as JSON."""
    options = [asdict(option) for option in entry.options]
    about = {"id": entry.name, "object": "strategy", "paper": entry.paper, "meaning": entry.help}
    return about | {"options": options, "presets": entry.presets}
