"""Stop rules by name. Importing this package registers all of them."""

from __future__ import annotations

from collections.abc import Sequence

from starr.decode.stops.base import STOPS, StopRule
from starr.named import Entry
from starr.plugins import import_members

import_members(__name__, __path__)


def stop_rules(given: str | StopRule | Sequence[str | StopRule]) -> tuple[StopRule, ...]:
    """Rules from their text forms: one, several joined by +, or a list; "" and "none" are no rule."""
    if isinstance(given, str):
        given = [] if given.strip() in ("", "none") else given.split("+")
    many = [given] if isinstance(given, StopRule) else given
    return tuple(STOPS.parse(rule) for rule in many)


def stops() -> list[Entry[StopRule]]:
    """All stop rules, by name, with paper, options and defaults."""
    return STOPS.all()
