"""Find the fastest options of a strategy whose loss against a baseline stays within a bound.

Loss is counted in answers that are right and, where the task defines it, well formed.

Tuning is successive halving on a calibration split. All candidates decode a few samples. A round drops a candidate if
even the upper end of its interval is below the bound. It keeps the faster half of the others and doubles the samples.
The fastest candidate whose loss is within the bound with the stated confidence wins. It is scored once on samples that
tuning never saw.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

from starr.errors import InputError
from starr.evals.run.results import summarise
from starr.evals.run.runs import Run
from starr.evals.run.store import Sample
from starr.evals.stats import Paired, paired
from starr.named import check_range

Measure = Callable[[Run, Sequence[int]], list[Sample]]
FIRST_ROUND = 16


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest loss, in percentage points, and how sure we must be that it is kept (one-sided)."""

    points: float = 2.0
    confidence: float = 0.9

    def __post_init__(self) -> None:
        check_range("--loss", self.points, 0, 100, whole=False)
        check_range("--confidence", self.confidence, 0.5, 1, whole=False, open_high=True)

    @property
    def z(self) -> float:
        """The bound's confidence as a quantile of the normal distribution."""
        return NormalDist().inv_cdf(self.confidence)

    def least(self, n: int) -> float:
        """The smallest loss, in points, that ``n`` samples can rule out: of two runs that agree on every one."""
        return -100 * paired([True] * n, [True] * n, self.z).interval[0]

    def enough(self) -> int:
        """The fewest samples on which two runs that agree on every one keep the bound."""
        if self.points == 0:
            raise InputError("--loss 0 can never be shown.", hint="Allow some loss: --loss 1.", param="loss")
        return next(n for n in itertools.count(1) if self.least(n) <= self.points)

    def check(self, n: int) -> None:
        """Raise unless ``n`` samples can show that the bound is kept; asked before anything is decoded."""
        needed = self.enough()
        if n < needed:
            raise InputError(
                f"{n} items cannot show a loss below {self.least(n):.1f} points with {self.confidence:.0%} confidence;",
                hint=f"use --calibration {needed}, or allow --loss {math.ceil(10 * self.least(n)) / 10:g}.",
                param="calibration",
            )

    def kept(self, pair: Paired) -> bool:
        """The lower end of the difference (candidate minus baseline) is above minus the bound."""
        return pair.interval[0] * 100 >= -self.points

    def hopeless(self, pair: Paired) -> bool:
        """Even the upper end is below it."""
        return pair.interval[1] * 100 < -self.points


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate on the samples it has decoded so far."""

    run: Run
    n: int
    figures: dict[str, Any]
    pair: Paired

    @property
    def both(self) -> float:
        """Share right and well formed."""
        return float(self.figures["both"])

    @property
    def forwards(self) -> float:
        """Mean forwards of a sample."""
        return float(self.figures["forwards"])


@dataclass(frozen=True, slots=True)
class Tuned:
    """What tuning found; ``winner`` is None when no candidate kept the bound."""

    winner: Scored | None
    candidates: Sequence[Scored]
    baseline: dict[str, Any]
    held_out: dict[str, Any] = field(default_factory=dict)


def parse_grid(texts: Sequence[str]) -> dict[str, list[str]]:
    """``option=a/b/c`` for each option; values as they stand in a text form."""
    grid: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        chosen = [value for value in values.split("/") if value]
        if not equals or not name.strip() or not chosen:
            raise InputError(f"--grid is written option=a/b/c, got {text!r}.", param="grid")
        grid[name.strip()] = chosen
    if not grid:
        example = "--strategy threshold --grid tau=0.7/0.8/0.9"
        raise InputError("tune needs at least one --grid option=a/b/c.", hint=f"Write {example}.", param="grid")
    return grid


def candidates(strategy: str, grid: dict[str, list[str]], draw: int | None = None, seed: int = 0) -> list[str]:
    """Text forms of all combinations, or of ``draw`` different ones at random."""
    forms = []
    for values in itertools.product(*grid.values()):
        options = ",".join(f"{name}={value}" for name, value in zip(grid, values, strict=True))
        forms.append(f"{strategy}{',' if ':' in strategy else ':'}{options}")
    if draw is not None and draw < len(forms):
        forms = random.Random(seed).sample(forms, draw)
    return forms


def score(run: Run, samples: Sequence[Sample], base: Sequence[Sample], bound: Bound) -> Scored:
    """A candidate's figures, and its difference from the baseline on the same items."""
    good = {s.index: s.both for s in base}
    pair = paired([s.both for s in samples], [good[s.index] for s in samples], bound.z)
    return Scored(run, len(samples), summarise(samples), pair)


def tune(
    runs: Sequence[Run], base: Run, bound: Bound, splits: tuple[Sequence[int], Sequence[int]], measure: Measure
) -> Tuned:
    """Halve the candidates over the calibration places; score the winner on the held-out ones."""
    calibration, held_out = splits
    alive, count = list(runs), min(FIRST_ROUND, len(calibration))
    last: dict[Run, Scored] = {}
    while True:
        places = calibration[:count]
        reference = measure(base, places)
        last |= {run: score(run, measure(run, places), reference, bound) for run in alive}
        hopeful = [run for run in alive if not bound.hopeless(last[run].pair)]
        hopeful.sort(key=lambda run: last[run].forwards)
        if count == len(calibration):
            break
        alive = hopeful[: max(2, (len(hopeful) + 1) // 2)]
        count = min(2 * count, len(calibration))
    final = [last[run] for run in hopeful if last[run].n == count and bound.kept(last[run].pair)]
    winner = final[0] if final else None
    scores = check(winner.run, base, bound, held_out, measure) if winner is not None and held_out else {}
    ranked = sorted(last.values(), key=lambda s: s.forwards)
    return Tuned(winner, ranked, summarise(measure(base, calibration)), scores)


def check(run: Run, base: Run, bound: Bound, places: Sequence[int], measure: Measure) -> dict[str, Any]:
    """The winner against the baseline on samples that tuning never saw."""
    ours, theirs = measure(run, places), measure(base, places)
    scored, peer = score(run, ours, theirs, bound), summarise(theirs)
    names = ("right", "formed", "both", "forwards")
    return {
        "n": scored.n,
        **{name: scored.figures[name] for name in names},
        **{f"baseline_{name}": peer[name] for name in names},
        "difference": scored.pair.difference,
        "interval": scored.pair.interval,
        "kept": bound.kept(scored.pair),
    }


def write_preset(tuned: Tuned, path: Path, facts: dict[str, Any]) -> None:
    """A file that ``--strategy @FILE`` reads."""
    if tuned.winner is None:
        raise ValueError("nothing was found to write")
    body = {"strategy": tuned.winner.run.strategy, "cache": tuned.winner.run.cache, "held_out": tuned.held_out, **facts}
    path.write_text(json.dumps(body, indent=1) + "\n")
