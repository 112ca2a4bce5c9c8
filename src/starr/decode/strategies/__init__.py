"""Every strategy, by name. Importing this package registers all of them."""

from __future__ import annotations

from starr.decode.strategies.base import STRATEGIES, Strategy
from starr.named import Entry
from starr.plugins import import_members

import_members(__name__, __path__)


def strategy(text: str | Strategy) -> Strategy:
    """A strategy from its text form, e.g. ``starr:temporal_window=5,responsive=false``."""
    return STRATEGIES.parse(text)


def strategies() -> list[Entry[Strategy]]:
    """All strategies, by name, with paper, options and defaults."""
    return STRATEGIES.all()
