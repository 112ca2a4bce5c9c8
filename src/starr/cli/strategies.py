"""``starr strategies``: what strategies, caches, stop rules and templates there are: papers, options, defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import Common, Json
from starr.cli.report import clip, dump
from starr.cli.verb import family, verb
from starr.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from starr.named import Entry

TITLES = {
    "strategies": "Strategies (--strategy)",
    "caches": "Caches (--cache)",
    "stop_rules": "Stop rules (--stop-rule)",
    "ice": "In-place chain of thought (--ice)",
}

LINE = 76  # characters of a name and what it does


@dataclass(frozen=True, kw_only=True)
class ListStrategiesOptions(Common):
    """The flags of ``starr strategies``."""

    json: Json = False


@dataclass(frozen=True, kw_only=True)
class ShowStrategyOptions(Common):
    """The flags of ``starr strategies show``."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="A strategy, a cache, a stop rule or ice.")]
    json: Json = False


def add(app: typer.Typer) -> None:
    """Add ``starr strategies`` and its verbs."""
    about = "Strategies, which commit and revoke (remask) tokens; also caches and stop rules."
    strategies = family(app, "strategies", about, ListStrategiesOptions, show_all)
    verb(strategies, "list", ListStrategiesOptions, show_all)
    verb(strategies, "show", ShowStrategyOptions, show_one)


def everything() -> dict[str, list[Entry[Any]]]:
    """What there is, by kind."""
    import starr
    from starr.decode.prompts.ice import ices
    from starr.decode.stops import stops

    return {"strategies": starr.strategies(), "caches": starr.caches(), "stop_rules": stops(), "ice": ices()}


def show_all(options: ListStrategiesOptions) -> None:
    """List them all, with their options."""
    if options.json:
        print(dump({kind: [*map(to_dict, entries)] for kind, entries in everything().items()}))
        return
    print(write_index(), end="\n\n")
    for kind, entries in everything().items():
        print(f"{TITLES[kind]}\n")
        for entry in entries:
            print(describe(entry, indent="  "), end="\n\n")


def write_index() -> str:
    """One line for each: its name, and what it does."""
    parts = []
    for kind, entries in everything().items():
        width = max(len(entry.name) for entry in entries)
        lines = [f"  {entry.name:<{width}}  {clip(entry.help, LINE - width)}" for entry in entries]
        parts.append("\n".join([TITLES[kind], *lines]))
    return "\n\n".join([*parts, "`starr strategies show NAME` shows the options of one; here they are all:"])


def show_one(options: ShowStrategyOptions) -> None:
    """Show one of them: paper, meaning, options and defaults."""
    known = {entry.name: entry for entries in everything().values() for entry in entries}
    if options.name not in known:
        hint = did_you_mean(options.name, known)
        raise InputError(f"No strategy, cache or stop rule is named {options.name!r}.", hint=hint, param="name")
    entry = known[options.name]
    print(dump(to_dict(entry)) if options.json else describe(entry))


def describe(entry: Entry[Any], indent: str = "") -> str:
    """An entry in a few lines: name and paper, meaning, traits, options, presets."""
    from starr.decode.catalogue import limits, shown

    lines = [f"{entry.name}  ({entry.paper})", f"  {entry.help}"]
    facts = traits(entry)
    if facts:
        lines.append(f"  {facts}")
    names = [f"{option.name}={shown(option.default)}" for option in entry.options]
    width = max(map(len, names), default=0)
    lines += [
        f"    {name:<{width}}  {option.help} ({limits(option)})"
        for name, option in zip(names, entry.options, strict=True)
    ]
    for name, values in entry.presets.items():
        changed = ", ".join(f"{key}={shown(value)}" for key, value in values.items())
        lines.append(f"    preset={name}  {changed}")
    return "\n".join(indent + line for line in lines)


def traits(entry: Entry[Any]) -> str:
    """Whether a strategy revokes and which signals it needs; "" for anything else."""
    from starr.decode.catalogue import revokes
    from starr.decode.strategies.base import Strategy

    if not issubclass(entry.kind, Strategy):
        return ""
    signals = ", ".join(sorted(entry.kind.signals)) or "none"
    return f"revokes (remasks): {revokes(entry)} · signals: {signals}"


def to_dict(entry: Entry[Any]) -> dict[str, Any]:
    """An entry as JSON."""
    fields = ("name", "type", "default", "help", "choices", "low", "high")
    body = {"name": entry.name, "paper": entry.paper, "help": entry.help, "presets": entry.presets}
    from starr.decode.catalogue import revokes
    from starr.decode.strategies.base import Strategy

    if issubclass(entry.kind, Strategy):
        body |= {"revokes": revokes(entry), "signals": sorted(entry.kind.signals)}
    return body | {"options": [{name: getattr(option, name) for name in fields} for option in entry.options]}
