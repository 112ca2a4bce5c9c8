"""Every strategy, by name. Importing this package registers all of them."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from types import ModuleType

from starr.decode.strategies.base import Strategy
from starr.decode.strategies.members import STRATEGIES
from starr.named import Entry

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def strategy(text: str | Strategy) -> Strategy:
    """A strategy from its text form, e.g. ``starr:temporal_window=5,responsive=false``."""
    return STRATEGIES.parse(text)


def strategies() -> list[Entry[Strategy]]:
    """All strategies, by name, with paper, options and defaults."""
    return STRATEGIES.all()


class _Callable(ModuleType):
    """The package and the public function share the name ``starr.decode.strategies``: let both work."""

    def __call__(self, text: str | Strategy) -> Strategy:
        return strategy(text)


sys.modules[__name__].__class__ = _Callable
