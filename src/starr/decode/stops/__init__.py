"""Stop rules by name. Importing this package registers all of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence

from starr.decode.stops.base import STOPS, StopRule
from starr.named import Entry

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def stop_rules(given: str | StopRule | Sequence[str | StopRule]) -> tuple[StopRule, ...]:
    """Rules from their text forms: one, several joined by +, or a list; "" and "none" are no rule."""
    if isinstance(given, str):
        given = [] if given.strip() in ("", "none") else given.split("+")
    many = [given] if isinstance(given, StopRule) else given
    return tuple(STOPS.parse(rule) for rule in many)


def stops() -> list[Entry[StopRule]]:
    """All stop rules, by name, with paper, options and defaults."""
    return STOPS.all()
