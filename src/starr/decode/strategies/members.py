"""The registry of strategies and the decorator that fills it."""

from __future__ import annotations

from typing import TypeVar

from starr.decode.strategies.base import Strategy
from starr.named import Registry

STRATEGIES: Registry[Strategy] = Registry("strategy", Strategy, "starr.strategies")

S = TypeVar("S", bound=type[Strategy])


def register(cls: S) -> S:
    """Register a strategy under its ``name``; goes above ``@dataclass(frozen=True, kw_only=True)``."""
    STRATEGIES.add(cls)
    return cls
