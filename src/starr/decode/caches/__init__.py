"""Caches as query plans: which positions a forward recomputes. Importing this package registers all of them."""

from __future__ import annotations

import importlib
import pkgutil

from starr.decode.caches.base import CACHES, Cache
from starr.named import Entry

__all__ = ["CACHES", "Cache", "cache", "caches"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def cache(text: str | Cache) -> Cache:
    """A cache from its text form, e.g. ``dkv:refresh=4``."""
    return CACHES.parse(text)


def caches() -> list[Entry[Cache]]:
    """All caches, by name, with paper, options and defaults."""
    return CACHES.all()
