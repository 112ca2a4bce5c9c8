"""STaRR: fast decoding for masked diffusion language models."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from starr.model.numbers import disable_amx

if TYPE_CHECKING:
    from starr.api import agenerate, astream, choose, generate, infill, strategy, stream
    from starr.decode.caches import cache, caches
    from starr.decode.caches.base import Cache
    from starr.decode.ranking import best_of, top_of, with_best
    from starr.decode.result import Event
    from starr.decode.stops.base import Moment, StopRule, Verdict
    from starr.decode.strategies import strategies
    from starr.decode.strategies.base import Strategy
    from starr.decode.trace import Generation, Generations, Trace
    from starr.decode.view import Action, Carry, Decision, StepView, actions, commits
    from starr.errors import InputError, LoadError, StarrError, WorkError
    from starr.evals.tasks import Grade, Item, Task
    from starr.fit.calibrate.work import calibrate
    from starr.integrations.transformers import wrap
    from starr.model.load import Model, load
    from starr.named import option
    from starr.options import Options
    from starr.plugins import register
    from starr.viewer.inline import show_inline

__version__ = "0.1.0"
__all__ = [
    "Action",
    "Cache",
    "Carry",
    "Decision",
    "Event",
    "Generation",
    "Generations",
    "Grade",
    "InputError",
    "Item",
    "LoadError",
    "Model",
    "Moment",
    "Options",
    "StarrError",
    "StepView",
    "StopRule",
    "Strategy",
    "Task",
    "Trace",
    "Verdict",
    "WorkError",
    "actions",
    "agenerate",
    "astream",
    "best_of",
    "cache",
    "caches",
    "calibrate",
    "choose",
    "commits",
    "generate",
    "infill",
    "load",
    "option",
    "register",
    "show_inline",
    "strategies",
    "strategy",
    "stream",
    "top_of",
    "with_best",
    "wrap",
]

if "torch" not in sys.modules:  # OpenMP reads these once, when torch loads it: waiting threads shall sleep, not spin
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    disable_amx()

_NAMES = {
    "starr.model.load": ("Model", "load"),
    "starr.api": ("agenerate", "astream", "choose", "generate", "infill", "strategy", "stream"),
    "starr.decode.strategies": ("strategies",),
    "starr.decode.caches": ("cache", "caches"),
    "starr.decode.trace": ("Generation", "Generations", "Trace"),
    "starr.decode.result": ("Event",),
    "starr.options": ("Options",),
    "starr.errors": ("InputError", "LoadError", "StarrError", "WorkError"),
    # what a strategy, cache, stop rule or task of somebody's own needs: docs/extend.md
    "starr.fit.calibrate.work": ("calibrate",),
    "starr.plugins": ("register",),
    "starr.named": ("option",),
    "starr.decode.strategies.base": ("Strategy",),
    "starr.decode.view": ("Action", "Carry", "Decision", "StepView", "actions", "commits"),
    "starr.decode.ranking": ("best_of", "top_of", "with_best"),
    "starr.decode.caches.base": ("Cache",),
    "starr.decode.stops.base": ("Moment", "StopRule", "Verdict"),
    "starr.evals.tasks": ("Grade", "Item", "Task"),
    "starr.viewer.inline": ("show_inline",),
    "starr.integrations.transformers": ("wrap",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import on first use: ``import starr`` and ``starr --help`` must not load torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'starr' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, before any of them is imported."""
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
