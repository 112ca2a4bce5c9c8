"""What there is to choose from, for ``/v1/strategies``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starr.decode.caches import caches
from starr.decode.strategies import strategies


def described() -> dict[str, Any]:
    """Strategies and caches with their papers, options and defaults."""
    return {"object": "list", "data": [entry_of(e) for e in strategies()], "caches": [entry_of(e) for e in caches()]}


def entry_of(entry: Any) -> dict[str, Any]:
    """One member as JSON."""
    options = [asdict(option) for option in entry.options]
    about = {"id": entry.name, "object": "strategy", "paper": entry.paper, "meaning": entry.help}
    return about | {"options": options, "presets": entry.presets}
