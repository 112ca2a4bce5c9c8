"""STaRR: fast decoding for masked diffusion language models."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starr.api import generate, infill, stream
    from starr.model.load import load
    from starr.query import cache, caches
    from starr.strategy import strategies, strategy
    from starr.trace import Trace

__version__ = "0.1.0"
__all__ = ["Trace", "cache", "caches", "generate", "infill", "load", "strategies", "strategy", "stream"]

_HOMES = {
    "load": "starr.model.load",
    "generate": "starr.api",
    "stream": "starr.api",
    "infill": "starr.api",
    "strategy": "starr.strategy",
    "strategies": "starr.strategy",
    "cache": "starr.query",
    "caches": "starr.query",
    "Trace": "starr.trace",
}


def __getattr__(name: str) -> Any:
    """Import on first use: ``import starr`` and ``starr --help`` must not load torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'starr' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
