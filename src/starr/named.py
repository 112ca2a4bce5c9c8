"""Names, options and the one text form ``name:option=value,option=value`` of strategies and caches."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from starr.errors import InputError, did_you_mean
from starr.plugins import HOLDERS, EntryPoints, check_methods

MOST_TEXT = 200  # characters of a text form
MOST_VALUE = 1000  # characters of one option that is text, when it comes from Python
MANY = 10**9  # stands for no upper bound: the model says how long a canvas may be
MOST: dict[str, float] = {"int": 2**20, "float": 1e6}  # more positions or steps than any context; far within float32
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
    open_low: bool = False  # the lower bound itself is excluded

    def __post_init__(self) -> None:
        """A number without bounds of its own has those of its type."""
        most = MOST.get(self.type)
        if most is not None and self.high is None:
            object.__setattr__(self, "high", most)
        if most is not None and self.low is None:
            object.__setattr__(self, "low", -most)


@dataclasses.dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One registered member."""

    name: str
    paper: str
    kind: type[T]
    options: tuple[Option, ...]
    help: str
    presets: dict[str, dict[str, Any]]

    def __repr__(self) -> str:
        given = ",".join(f"{option.name}={option.default}" for option in self.options)
        return f"<{self.name}{':' if given else ''}{given} ({self.paper})>"


def option(
    default: Any, help: str, *, choices: tuple[str, ...] = (), low: float | None = None, high: float | None = None
) -> Any:
    """A dataclass field with its meaning and its bounds (both inclusive)."""
    if not isinstance(default, int | float | str | None):
        rule = f"The default of an option is a number, a truth value, a text or None, got {default!r:.60}."
        raise InputError(rule, hint='Write as starr.option(0.5, "what it means").')
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices, "low": low, "high": high})


class Registry(Generic[T]):
    """All members of one kind, by name: ours, those registered by a script, and those of installed packages.

    ``base`` is the class that members derive from, ``group`` the entry-point group of packages that bring some.
    """

    def __init__(self, kind: str, base: type[T] | None = None, group: str = "") -> None:
        self.kind, self.base = kind, base
        self.entries: dict[str, Entry[T]] = {}
        self.outside = EntryPoints(group)
        HOLDERS.append(self)

    def takes(self, thing: Any) -> bool:
        """Whether a thing is a class of members."""
        return self.base is not None and isinstance(thing, type) and issubclass(thing, self.base)

    def add(self, cls: type[T]) -> type[T]:
        """Register a frozen dataclass with class attributes ``name`` and perhaps ``paper`` and ``presets``."""
        name = getattr(cls, "name", None)
        if not isinstance(name, str) or not name or set(name) & set(" :,=+@"):
            raise InputError(f"{cls.__qualname__} needs a name without spaces and :,=+@, got {name!r}.")
        if not dataclasses.is_dataclass(cls):
            raise InputError(
                f"{cls.__qualname__} must be a dataclass.", hint="Add @dataclass(frozen=True, kw_only=True)."
            )
        check_fields(cls)
        before = self.entries.get(name)
        if before is not None and full_name(before.kind) != full_name(cls):
            raise InputError(
                f"The {self.kind} name {name!r} is taken by {full_name(before.kind)}.", hint="Choose another."
            )
        self.check_kind(cls)
        summary = next(iter((cls.__doc__ or "").strip().splitlines()), "")
        paper = getattr(cls, "paper", "")
        self.entries[name] = Entry(name, paper, cls, options_of(cls), summary, getattr(cls, "presets", {}))
        return cls

    def check_kind(self, kind: Any) -> None:
        """Raise unless a class has the methods of its base, with their arguments."""
        base: Any = self.base
        if base is not None:
            check_methods(kind, base)

    def all(self) -> list[Entry[T]]:
        """Every member there is, by name."""
        self.outside.load(self._add_outside)
        return [self.entries[name] for name in sorted(self.entries)]

    def _add_outside(self, point: EntryPoint, thing: Any) -> None:
        if isinstance(thing, ModuleType):  # its members have registered themselves
            return
        if not self.takes(thing):
            raise InputError(f"it is not a {self.kind}, but {thing!r}.")
        self.add(thing)

    def parse(self, text: str | T, **options: Any) -> T:
        """Make a member from its text form; a member itself passes through. ``options`` are set in addition."""
        if options:
            return self.change(self.parse(text), options)
        if not isinstance(text, str):
            return self.checked(text)
        if len(text) > MOST_TEXT:
            raise InputError(
                f"The text of a {self.kind} has at most {MOST_TEXT} characters, got {len(text)}.", param=self.kind
            )
        name, _, rest = text.strip().partition(":")
        if name not in self.entries:
            known = [entry.name for entry in self.all()]
            if name not in known:
                hint = hint_form(text, known) or did_you_mean(name, known)
                raise InputError(f"Unknown {self.kind} {name!r}.", hint=hint, param=self.kind)
        return self.build(self.entries[name], split_options(rest, self.kind))

    def change(self, member: Any, options: Mapping[str, Any]) -> T:
        """The member with other options."""
        known = [option.name for option in options_of(type(member))]
        for name in options:
            if name not in known:
                hint = plain_field(type(member), name) or did_you_mean(name, known)
                raise InputError(f"{member.name} has no option {name!r}.", hint=hint, param=self.kind)
        changed: T = dataclasses.replace(member, **options)
        return changed

    def checked(self, thing: Any) -> T:
        """A member; anything else is an error that says what a member is."""
        kinds = tuple(entry.kind for entry in self.entries.values()) if self.base is None else (self.base,)
        if not isinstance(thing, kinds):
            hint = f"Write {thing.__name__}()." if isinstance(thing, type) and issubclass(thing, kinds) else ""
            rule = f"A {self.kind} is given as text (name:option=value) or as an instance, not as {thing!r:.60}."
            raise InputError(rule, hint=hint, param=self.kind)
        self.check_kind(type(thing))
        found: T = thing
        return found

    def build(self, entry: Entry[T], given: dict[str, str]) -> T:
        """A member from options in text; those given beside a preset win."""
        values: dict[str, Any] = {}
        preset = given.pop("preset", None)
        if preset is not None:
            if preset not in entry.presets:
                hint = did_you_mean(preset, entry.presets)
                raise InputError(f"Unknown preset {preset!r} of {entry.name}.", hint=hint, param=self.kind)
            values.update(entry.presets[preset])
        known = {o.name: o for o in entry.options}
        for key, value in given.items():
            if key not in known:
                hint = plain_field(entry.kind, key) or did_you_mean(key, known)
                raise InputError(f"{entry.name} has no option {key!r}.", hint=hint, param=self.kind)
            values[key] = convert(known[key], value, entry.name)
        return entry.kind(**values)


def full_name(cls: type) -> str:
    """Where a class is defined; the same for a class that is defined again."""
    return f"{cls.__module__}.{cls.__qualname__}"


def options_of(cls: Any) -> tuple[Option, ...]:
    """The options of a dataclass, in order."""
    return read_options(cls)


@functools.cache
def read_options(cls: type) -> tuple[Option, ...]:
    """The same, read once per class: resolving type hints takes milliseconds. Fields without help are no options."""
    hints = get_type_hints(cls)
    found = []
    for field in (f for f in dataclasses.fields(cls) if "help" in f.metadata):
        kinds = [k.__name__ for k in get_args(hints[field.name]) if k is not type(None)]
        kind = kinds[0] if kinds else hints[field.name].__name__
        found.append(Option(field.name, kind, field.default, **field.metadata))
    return tuple(found)


def check_fields(cls: Any) -> None:
    """Raise unless every field has a default, and those that are options one of their own type."""
    none = dataclasses.MISSING
    for field in dataclasses.fields(cls):
        if field.init and field.default is none and field.default_factory is none:
            advice = f'{field.name}: float = starr.option(0.5, "what it means")'
            raise InputError(f"{cls.__qualname__}.{field.name} needs a default.", hint=f"Write it as {advice}.")
    for opt in options_of(cls):
        if opt.type not in (*CONVERTERS, "bool"):
            hint = "Use int, float, bool or str."
            raise InputError(f"{cls.__qualname__}.{opt.name} cannot be an option of type {opt.type}.", hint=hint)
        check_value(opt, opt.default, f"{cls.__qualname__}.")


def plain_field(cls: Any, name: str) -> str:
    """How to make an option of a field that is none; "" where there is no such field."""
    found = {field.name: field for field in dataclasses.fields(cls)}.get(name)
    if found is None:
        return ""
    kind = found.type if isinstance(found.type, str) else found.type.__name__
    return f'It is a plain field: write {name}: {kind} = starr.option({found.default!r:.40}, "what it means").'


def hint_form(text: str, known: list[str]) -> str:
    """``Write threshold:tau=0.3.`` for threshold,tau=0.3 and threshold(tau=0.3); "" where that is not meant."""
    parts = re.fullmatch(r"([\w-]+)[\s,;(/]+(\w+=[^()]+?)\)?", text.strip())
    return f"Write {parts[1]}:{parts[2]}." if parts and parts[1] in known else ""


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


def convert(option: Option, text: str, owner: str = "") -> Any:
    """The option's value from text, checked for type; bounds are checked by ``check_value``."""
    where = f"{owner}: {option.name}" if owner else option.name
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
        check_value(opt, make_plain(member, opt.name), f"{member.name}: ")


def make_plain(thing: Any, name: str) -> Any:
    """The value of a field, which becomes a number of Python where it was one of another library."""
    value = getattr(thing, name)
    if (plain := plain_number(value)) is not value:
        object.__setattr__(thing, name, plain)
    return plain


def plain_number(value: Any) -> Any:
    """A single number of an array library as a number of Python; anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def check_value(option: Option, value: Any, owner: str = "") -> None:
    """Raise unless the value is one of the option's choices, or a number within its bounds; ``owner`` begins the line.

    The type of a member's option is checked too. Options of decoding, which have no owner, take more than text.
    """
    where = f"{owner}{option.name}"
    if value is None and option.default is None:
        return
    if option.choices and value not in option.choices:
        raise InputError(f"{where} must be one of {', '.join(option.choices)}, got {value!r}.", param=option.name)
    if owner and not is_a(value, option.type):
        raise InputError(f"{where} must be {option.type}, got {value!r}.", param=option.name)
    if owner and isinstance(value, str) and len(value) > MOST_VALUE:
        raise InputError(f"{where} has at most {MOST_VALUE} characters, got {len(value)}.", param=option.name)
    if option.type in ("int", "float"):
        whole = option.type == "int" and not owner
        check_range(where, value, option.low, option.high, whole=whole, open_low=option.open_low)


def check_range(
    name: str,
    value: Any,
    low: float | None,
    high: float | None = None,
    *,
    whole: bool = True,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    """Raise unless ``value`` is a number (a whole one if ``whole``) between the bounds; None is no bound.

    Bounds are inclusive unless open. NaN and truth values are no numbers.
    """
    floor, ceiling = -math.inf if low is None else low, math.inf if high is None else high
    inside = is_a(value, "int" if whole else "float") and floor <= value <= ceiling
    if inside and not (open_low and value == floor) and not (open_high and value == ceiling):
        return
    left = f"{'(' if open_low or low is None else '['}{bound(floor)}"
    right = f"{bound(ceiling)}{')' if open_high or ceiling in (MANY, math.inf) else ']'}"
    kind = "a whole number within" if whole else "within"
    param = name.removeprefix("--").replace("-", "_").rpartition(" ")[2]
    raise InputError(f"{name} must be {kind} {left}, {right}, got {value!r}.", param=param)


def bound(value: float) -> str:
    """A bound in a few characters; whole numbers in full."""
    if math.isinf(value) or value == MANY:
        return "∞" if value > 0 else "-∞"
    return str(value) if isinstance(value, int) else f"{value:g}"


def is_a(value: Any, kind: str) -> bool:
    """Whether a value is of an option's type; whole numbers are floats too, truth values are no numbers."""
    if kind in ("int", "float"):
        return isinstance(value, int if kind == "int" else int | float) and not isinstance(value, bool)
    return type(value).__name__ == kind


def set_options(member: Any) -> dict[str, Any]:
    """The options of a member that differ from their defaults."""
    values = {option.name: getattr(member, option.name) for option in options_of(type(member))}
    return {o.name: values[o.name] for o in options_of(type(member)) if values[o.name] != o.default}


def text_form(member: Any) -> str:
    """The shortest text that ``parse`` turns back into this member: the name and what differs from the defaults."""
    parts = [f"{name}={str(v).lower() if isinstance(v, bool) else v}" for name, v in set_options(member).items()]
    return f"{member.name}:{','.join(parts)}" if parts else str(member.name)
