"""Caches as query plans: which positions a forward recomputes. Importing this package registers all of them."""

from __future__ import annotations

from starr.decode.caches.base import CACHES, Cache
from starr.named import Entry
from starr.plugins import import_members

__all__ = ["CACHES", "Cache", "cache", "caches"]

import_members(__name__, __path__)


def cache(text: str | Cache) -> Cache:
    """A cache from its text form, e.g. ``dkv:refresh=4``."""
    return CACHES.parse(text)


def caches() -> list[Entry[Cache]]:
    """All caches, by name, with paper, options and defaults."""
    return CACHES.all()
