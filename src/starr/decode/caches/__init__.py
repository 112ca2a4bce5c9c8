"""Caches as query plans: which positions a forward recomputes. Importing this package registers all of them."""

from __future__ import annotations

from typing import Any

from starr.decode.caches.base import CACHES, Cache
from starr.named import Entry
from starr.plugins import import_members

__all__ = ["CACHES", "Cache", "cache", "caches"]

import_members(__name__, __path__)


def cache(text: str | Cache, **options: Any) -> Cache:
    """A cache from its text form, e.g. ``dkv:refresh=4``, or from its name and options: ``cache("dkv", refresh=4)``."""
    return CACHES.parse(text, **options)


def caches() -> list[Entry[Cache]]:
    """All caches, by name, with paper, options and defaults."""
    return CACHES.all()
