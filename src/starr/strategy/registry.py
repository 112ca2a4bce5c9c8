"""Names, options and the one text form ``name:option=value,option=value`` of strategies and caches."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from starr.errors import InputError, did_you_mean

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One option of a strategy or cache, as shown by ``starr strategies`` and checked at construction."""

    name: str
    type: str
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """What there is under one name."""

    name: str
    paper: str
    kind: type[T]
    options: tuple[Option, ...]
    help: str
    presets: dict[str, dict[str, Any]]


def option(
    default: Any, help: str, *, choices: tuple[str, ...] = (), low: float | None = None, high: float | None = None
) -> Any:
    """A dataclass field with its meaning and its bounds (both inclusive)."""
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices, "low": low, "high": high})


class Registry(Generic[T]):
    """All members of one kind, by name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.entries: dict[str, Entry[T]] = {}

    def add(self, cls: type[T]) -> type[T]:
        """Register a frozen dataclass with class attributes ``name``, ``paper`` and perhaps ``presets``."""
        name: str = cls.name  # type: ignore[attr-defined]
        if name in self.entries:
            raise ValueError(f"two {self.kind} members are named {name!r}")
        summary = (cls.__doc__ or "").strip().splitlines()[0]
        paper: str = cls.paper  # type: ignore[attr-defined]
        self.entries[name] = Entry(name, paper, cls, options_of(cls), summary, getattr(cls, "presets", {}))
        return cls

    def parse(self, text: str | T) -> T:
        """Make a member from its text form; a member itself passes through; ``@file`` reads a preset file."""
        if not isinstance(text, str):
            return text
        if text.startswith("@"):
            text = read_preset(Path(text[1:]))
        name, _, rest = text.strip().partition(":")
        entry = self.entries.get(name)
        if entry is None:
            raise InputError(f"Unknown {self.kind} {name!r}.", hint=did_you_mean(name, self.entries), param=self.kind)
        return self.build(entry, split_options(rest, self.kind))

    def build(self, entry: Entry[T], given: dict[str, str]) -> T:
        """A member from options in text; those given beside a preset win."""
        values: dict[str, Any] = {}
        preset = given.pop("preset", None)
        if preset is not None:
            if preset not in entry.presets:
                hint = did_you_mean(preset, entry.presets) if entry.presets else "It has none."
                raise InputError(f"Unknown preset {preset!r} of {entry.name}.", hint=hint, param=self.kind)
            values.update(entry.presets[preset])
        known = {o.name: o for o in entry.options}
        for key, value in given.items():
            if key not in known:
                raise InputError(f"{entry.name} has no option {key!r}.", hint=did_you_mean(key, known), param=self.kind)
            values[key] = convert(known[key], value, entry.name)
        return entry.kind(**values)


def options_of(cls: Any) -> tuple[Option, ...]:
    """The options of a dataclass, in order."""
    return read_options(cls)


@functools.cache
def read_options(cls: type) -> tuple[Option, ...]:
    """The same, read once per class: resolving type hints takes milliseconds."""
    hints = get_type_hints(cls)
    found = []
    for field in dataclasses.fields(cls):
        kinds = [k.__name__ for k in get_args(hints[field.name]) if k is not type(None)]
        kind = kinds[0] if kinds else hints[field.name].__name__
        meta = {k: field.metadata[k] for k in ("help", "choices", "low", "high")}
        found.append(Option(field.name, kind, field.default, **meta))
    return tuple(found)


def split_options(text: str, kind: str) -> dict[str, str]:
    """``a=1,b=x/y`` as a dictionary."""
    given: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise InputError(f"{kind} options are written name=value, got {part!r}.", param=kind)
        if key.strip() in given:
            raise InputError(f"{kind} option {key.strip()!r} is given twice.", param=kind)
        given[key.strip()] = value.strip()
    return given


CONVERTERS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}


def convert(option: Option, text: str, owner: str) -> Any:
    """The option's value from text, checked for type; bounds are checked by ``check``."""
    where = f"{owner}: {option.name}"
    if option.type == "bool":
        if text.lower() not in ("true", "false"):
            raise InputError(f"{where} must be true or false, got {text!r}.", param=option.name)
        return text.lower() == "true"
    if option.default is None and text.lower() == "none":
        return None
    try:
        return CONVERTERS[option.type](text)
    except ValueError:
        raise InputError(f"{where} must be {option.type}, got {text!r}.", param=option.name) from None


def check(member: Any) -> None:
    """Check every option of a member against its choices and bounds; call it from ``__post_init__``."""
    for opt in options_of(type(member)):
        value = getattr(member, opt.name)
        where = f"{member.name}: {opt.name}"
        if value is None and opt.default is None:
            continue
        if opt.choices and value not in opt.choices:
            raise InputError(f"{where} must be one of {', '.join(opt.choices)}, got {value!r}.", param=opt.name)
        if not is_a(value, opt.type):
            raise InputError(f"{where} must be {opt.type}, got {value!r}.", param=opt.name)
        if opt.type in ("int", "float"):
            low = -float("inf") if opt.low is None else opt.low
            high = float("inf") if opt.high is None else opt.high
            if not low <= value <= high:
                raise InputError(f"{where} must be within [{low:g}, {high:g}], got {value!r}.", param=opt.name)


def is_a(value: Any, kind: str) -> bool:
    """Whether a value is of an option's type; whole numbers are floats too, truth values are no numbers."""
    if kind == "float":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value).__name__ == kind


def text_form(member: Any) -> str:
    """The shortest text that ``parse`` turns back into this member: the name and what differs from the defaults."""
    parts = [
        f"{o.name}={str(v).lower() if isinstance(v, bool) else v}"
        for o in options_of(type(member))
        if (v := getattr(member, o.name)) != o.default
    ]
    return f"{member.name}:{','.join(parts)}" if parts else str(member.name)


def read_preset(path: Path) -> str:
    """The text form stored in a preset file, as written by ``starr tune``."""
    try:
        text = json.loads(path.read_text())["strategy"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"Preset file {path} must be JSON with a key 'strategy' ({type(error).__name__}).", param="strategy"
        ) from None
    return str(text)
