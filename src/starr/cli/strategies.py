"""``starr strategies``: what strategies and caches there are, their papers, options and defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import Common, Json
from starr.cli.report import dump
from starr.cli.verb import family, verb
from starr.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from starr.strategy.registry import Entry


@dataclass(frozen=True, kw_only=True)
class ListOptions(Common):
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class ShowOptions(Common):
    name: Annotated[str, typer.Argument(metavar="NAME", help="A strategy or a cache.")]
    json: Json = False


def add(app: typer.Typer) -> None:
    strategies = family(app, "strategies", "Strategies and caches: paper, options, defaults.", ListOptions, show_all)
    verb(strategies, "list", ListOptions, show_all)
    verb(strategies, "show", ShowOptions, show_one)


def show_all(options: ListOptions) -> None:
    """List every strategy and cache with its options."""
    import starr

    strategies, caches = starr.strategies(), starr.caches()
    if options.json:
        print(dump({"strategies": [*map(to_dict, strategies)], "caches": [*map(to_dict, caches)]}))
        return
    for title, entries in (("Strategies (--strategy)", strategies), ("Caches (--cache)", caches)):
        print(f"{title}\n")
        for entry in entries:
            print(describe(entry, indent="  "), end="\n\n")


def show_one(options: ShowOptions) -> None:
    """Show one: paper, meaning, options and defaults."""
    import starr

    entries: list[Entry[Any]] = [*starr.strategies(), *starr.caches()]
    known = {entry.name: entry for entry in entries}
    if options.name not in known:
        raise InputError(
            f"There is no strategy or cache {options.name!r}.", hint=did_you_mean(options.name, known), param="name"
        )
    entry = known[options.name]
    print(dump(to_dict(entry)) if options.json else describe(entry))


def describe(entry: Entry[Any], indent: str = "") -> str:
    """An entry in a few lines: name and paper, meaning, traits, options, presets."""
    from starr.catalogue import limits, shown

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
    """Whether a strategy revokes and which signals it needs; "" for a cache."""
    from starr.catalogue import revokes

    if not hasattr(entry.kind, "signals"):
        return ""
    signals = ", ".join(sorted(entry.kind.signals)) or "none"
    return f"revokes: {revokes(entry)} · signals: {signals}"


def to_dict(entry: Entry[Any]) -> dict[str, Any]:
    """An entry as JSON."""
    fields = ("name", "type", "default", "help", "choices", "low", "high")
    body = {"name": entry.name, "paper": entry.paper, "help": entry.help, "presets": entry.presets}
    if hasattr(entry.kind, "signals"):
        from starr.catalogue import revokes

        body |= {"revokes": revokes(entry), "signals": sorted(entry.kind.signals)}
    return body | {"options": [{name: getattr(option, name) for name in fields} for option in entry.options]}
