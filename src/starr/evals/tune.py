"""Find the fastest options of a strategy whose loss of accuracy against a baseline stays within a bound.

Successive halving on a calibration split: all candidates decode a few samples; a round drops those that even the kind
end of their interval puts below the bound, keeps the faster half of the rest, and doubles the samples. The fastest
candidate whose loss is within the bound with the stated confidence wins, and is scored once on samples that tuning
never saw.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

from starr.errors import InputError
from starr.evals.results import summarise
from starr.evals.runs import Run
from starr.evals.stats import Paired, paired
from starr.evals.store import Sample

Measure = Callable[[Run, Sequence[int]], list[Sample]]
FIRST_ROUND = 16


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest loss of accuracy, in percentage points, and how sure we must be that it is kept (one-sided)."""

    points: float = 2.0
    confidence: float = 0.9

    def __post_init__(self) -> None:
        if not 0 <= self.points <= 100:
            raise InputError(f"--loss must be within [0, 100] points, got {self.points}.", param="loss")
        if not 0.5 <= self.confidence < 1:
            raise InputError(f"--confidence must be within [0.5, 1), got {self.confidence}.", param="confidence")

    @property
    def z(self) -> float:
        return NormalDist().inv_cdf(self.confidence)

    def kept(self, pair: Paired) -> bool:
        """The unkind end of the difference (candidate minus baseline) is above minus the bound."""
        return pair.interval[0] * 100 >= -self.points

    def hopeless(self, pair: Paired) -> bool:
        """Even the kind end is below it."""
        return pair.interval[1] * 100 < -self.points


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate on the samples it has decoded so far."""

    run: Run
    n: int
    accuracy: float
    forwards: float
    pair: Paired


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
        raise InputError("tune needs at least one --grid option=a/b/c.", param="grid")
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
    right = {s.index: s.correct for s in base}
    pair = paired([s.correct for s in samples], [right[s.index] for s in samples], bound.z)
    n = len(samples)
    return Scored(run, n, sum(s.correct for s in samples) / n, sum(s.forwards for s in samples) / n, pair)


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
    scored = score(run, ours, theirs, bound)
    return {
        "n": scored.n,
        "accuracy": scored.accuracy,
        "baseline_accuracy": summarise(theirs)["accuracy"],
        "difference": scored.pair.difference,
        "interval": scored.pair.interval,
        "forwards": scored.forwards,
        "baseline_forwards": summarise(theirs)["forwards"],
        "kept": bound.kept(scored.pair),
    }


def write_preset(tuned: Tuned, path: Path, facts: dict[str, Any]) -> None:
    """A file that ``--strategy @FILE`` reads."""
    if tuned.winner is None:
        raise ValueError("nothing was found to write")
    body = {"strategy": tuned.winner.run.strategy, "cache": tuned.winner.run.cache, "held_out": tuned.held_out, **facts}
    path.write_text(json.dumps(body, indent=1) + "\n")
