"""Every strategy in words: what ``starr strategies`` knows, as rows and as the page docs/strategies.md.

``python -m starr.decode.catalogue > docs/strategies.md`` writes the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starr.decode.caches import caches
from starr.decode.strategies import strategies
from starr.decode.strategies.base import Strategy
from starr.named import Entry, Option, bound

INTRODUCTION = """# Strategies

This page is written by `python -m starr.decode.catalogue > docs/strategies.md` from the code that runs;
`starr strategies` prints the same on the command line.

A strategy is named everywhere by one text, `name` or `name:option=value,option=value`: in `starr.generate`, after
`--strategy`, in the server's `strategy` field. `preset=…` stands for several options at once; options next to it win.

All strategies need the proposals and their confidence. *Signals* are what one needs in addition; what no strategy in a
batch needs is not computed. *Revokes* says whether it may revoke (remask) tokens that it has committed.

Temporal voting (Time Is a Feature, arXiv:2508.09138) works with all of them: it reads an answer out of every step's
predictions and takes the one that most of them give. `starr trace vote trace.json` looks at the last number; from
Python, any parser will do:

```python
import starr
from starr.evals.grading.extract import final
from starr.research.voting import vote

model = starr.load()
prompt = "Tom has 12 apples. Tom buys 8 more. Then Tom gives 5 to a friend. How many apples does Tom have now?"
g = starr.generate(model, prompt, max_tokens=64, trace=True)
print(vote(g.trace, final, weights="exp", ends=model.spec.eos_ids).answer)
```"""

HUGE = 1e6  # a bound that nobody meets is not worth a word


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """One strategy."""

    name: str
    paper: str
    meaning: str
    signals: tuple[str, ...]
    revokes: str  # "yes", "no" or the option that makes it so
    options: tuple[Option, ...]
    presets: dict[str, dict[str, Any]]


def rows() -> list[StrategyRow]:
    """All strategies by name."""
    return [
        StrategyRow(e.name, e.paper, e.help, tuple(sorted(e.kind.signals)), revokes(e), e.options, e.presets)
        for e in strategies()
    ]


def revokes(entry: Entry[Strategy]) -> str:
    """Whether the strategy revokes with its defaults, or with one of its switches flipped."""
    if entry.kind().revokes():
        return "yes"
    for option in entry.options:
        if option.type == "bool" and entry.kind(**{option.name: not option.default}).revokes():
            return f"with {option.name}={shown(not option.default)}"
    return "no"


@dataclass(frozen=True, slots=True)
class PlacedOption:
    """An option of a strategy or cache, written where it belongs."""

    kind: str
    form: str


def find_option(name: str, value: Any, strategy: Any = None, cache: Any = None) -> PlacedOption | None:
    """The text form that sets an option: of the strategy or cache that was named, else of the best known that has it.

    None where none of them has such an option, or the value cannot be written in a text form.
    """
    first = {"strategy": (name_of(strategy), "threshold", "starr"), "cache": (name_of(cache), "dkv")}
    for kind, entries in (("strategy", strategies()), ("cache", caches())):
        having = [e.name for e in entries if name in (o.name for o in e.options)]
        if having and isinstance(value, str | int | float):
            best = next((each for each in first[kind] if each in having), having[0])
            return PlacedOption(kind, f"{best}:{name}={shown(value)}")
    return None


def name_of(member: Any) -> str:
    """The name of a strategy or cache given as text or as itself."""
    return member.partition(":")[0] if isinstance(member, str) else getattr(member, "name", "")


def shown(value: Any) -> str:
    """A value as it is written in a strategy's text."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def limits(option: Option) -> str:
    """The values that an option takes, in a few characters."""
    if option.choices:
        return ", ".join(option.choices)
    if option.type not in ("int", "float"):
        return {"str": "text", "bool": "true or false"}.get(option.type, option.type)
    low, high = (None if limit is None or abs(limit) >= HUGE else bound(limit) for limit in (option.low, option.high))
    if low is None or high is None:
        return option.type if low is None and high is None else f"at least {low}" if high is None else f"at most {high}"
    return f"{low} to {high}"


def markdown() -> str:
    """The page docs/strategies.md, ending in a newline."""
    listed = rows()
    head = ["| name | paper | signals | revokes |", "|---|---|---|---|"]
    lines = [
        f"| [`{row.name}`](#{row.name}) | {row.paper} | {', '.join(row.signals) or '–'} | {row.revokes} |"
        for row in listed
    ]
    return "\n\n".join([INTRODUCTION, "\n".join(head + lines), *map(section, listed)]) + "\n"


def section(row: StrategyRow) -> str:
    """One strategy's part of the page."""
    parts = [f"## {row.name}", f"{row.meaning} ({row.paper})"]
    if row.options:
        head = ["| option | default | values | meaning |", "|---|---|---|---|"]
        lines = [f"| `{o.name}` | {shown(o.default)} | {limits(o)} | {o.help.replace('|', '/')} |" for o in row.options]
        parts.append("\n".join(head + lines))
    for name, values in row.presets.items():
        parts.append(f"`preset={name}`: " + ", ".join(f"`{key}={shown(value)}`" for key, value in values.items()))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(markdown(), end="")
