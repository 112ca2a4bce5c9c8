"""Members from outside: ``@starr.register`` in a script, and entry points of other people's packages."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import threading
import warnings
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeVar

from starr.errors import InputError

Thing = TypeVar("Thing")


class Holder(Protocol):
    """A registry of one kind of members."""

    kind: str

    def takes(self, thing: Any) -> bool:
        """Test whether the thing is of its kind."""

    def add(self, thing: Any) -> Any:
        """Add the thing; raise InputError if that is not possible."""


HOLDERS: list[Holder] = []


def register(thing: Thing) -> Thing:
    """Register a strategy, cache, stop rule or task under its ``name``; the base class says which it is.

    Goes above ``@dataclass(frozen=True, kw_only=True)``. A class that is defined again, as in a notebook, replaces
    itself; another class cannot take its name.
    """
    for holder in HOLDERS:
        if holder.takes(thing):
            holder.add(thing)
            return thing
    raise InputError(
        f"{thing!r} cannot be registered.", hint="Derive it from starr.Strategy, Cache or StopRule, or make a Task."
    )


def import_members(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that the members in them register themselves."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")


@functools.cache
def check_methods(cls: type, base: type) -> None:
    """Raise unless a class has the methods of its base, with the same arguments."""
    for name, method in vars(base).items():
        own = getattr(cls, name)
        if name.startswith("_") or not inspect.isfunction(method) or not inspect.isfunction(own):
            continue
        given = list(inspect.signature(method).parameters)
        hint = f"Write: def {name}({', '.join(given)}): ..."
        if getattr(own, "__isabstractmethod__", False):
            raise InputError(f"{cls.__qualname__} needs a method {name}.", hint=hint)
        try:
            inspect.signature(own).bind(*given)
        except TypeError:
            rule = f"{cls.__qualname__}.{name} must take ({', '.join(given)})"
            raise InputError(f"{rule}, it takes {inspect.signature(own)}.", hint=hint) from None


class EntryPoints:
    """The members that installed packages bring in one entry-point group, loaded once, when they are first needed."""

    def __init__(self, group: str) -> None:
        self.group = group
        self._loaded = False
        self._lock = threading.RLock()

    def load(self, add: Callable[[EntryPoint, Any], object]) -> None:
        """Give every member to ``add``; warn by name of a plug-in that cannot be loaded or added."""
        with self._lock:
            if self._loaded or not self.group:
                return
            self._loaded = True
            for point in entry_points(group=self.group):
                try:
                    add(point, point.load())
                except (Exception, SystemExit) as error:
                    warn_of(point, error)


def warn_of(point: EntryPoint, error: BaseException) -> None:
    """Warn in one line of a broken plug-in."""
    package = point.dist.name if point.dist is not None else "an unnamed package"
    reason = " ".join(str(error).split()) or type(error).__name__
    line = f"The plug-in {point.name!r} of {package} ({point.group}) is left out: {type(error).__name__}: {reason}"
    warnings.warn(line, UserWarning, stacklevel=2)
