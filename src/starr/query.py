"""Caches as query plans: which positions a forward recomputes. Everything else is read from the K/V buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

from torch import Tensor

from starr.strategy.registry import Entry, Registry

if TYPE_CHECKING:
    from starr.canvas import Canvas
    from starr.request import Request


class Cache:
    """A frozen dataclass of options and one pure method over the canvas."""

    name: ClassVar[str]
    paper: ClassVar[str]
    buffered: ClassVar[bool] = True

    def check(self, request: Request) -> None:
        """Raise InputError where the rule cannot serve the request."""

    def query(self, canvas: Canvas) -> Tensor:
        """(B, C) bool: the positions to recompute at this step; padding is dropped by the caller."""
        raise NotImplementedError


CACHES: Registry[Cache] = Registry("cache")
C = TypeVar("C", bound=Cache)


def register(cls: type[C]) -> type[C]:
    CACHES.add(cls)
    return cls


@register
@dataclass(frozen=True, kw_only=True)
class NoCache(Cache):
    """Recompute everything at every step."""

    name: ClassVar[str] = "none"
    paper: ClassVar[str] = "plain decoding"
    buffered: ClassVar[bool] = False

    def query(self, canvas: Canvas) -> Tensor:
        return canvas.valid


def cache(text: str | Cache) -> Cache:
    """A cache from its text form, e.g. ``dkv:refresh=4``."""
    return CACHES.parse(text)


def caches() -> list[Entry[Cache]]:
    """What caches there are, by name, with paper, options and defaults."""
    return [CACHES.entries[name] for name in sorted(CACHES.entries)]
