"""Find the fastest options of a strategy whose loss against a baseline stays within a bound.

Loss is counted in answers that are right and, where the task defines it, well formed.

Tuning is a race on a calibration split. Every candidate decodes a few items, which give its speed. Then the fastest
decodes twice as many, again and again, until it has decoded all; then the next fastest. A candidate leaves the race in
two ways only: its loss is beyond the bound, or it is slower than a candidate that has decoded all items and kept the
bound. Both must be sure. So nobody leaves who may be the fastest within the bound. The winner is scored once on items
that tuning never saw. Where no candidate keeps the bound, the baseline itself is the answer.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist, mean, stdev
from typing import Any

from starr.errors import InputError
from starr.evals.run.results import summarise
from starr.evals.run.runs import Run
from starr.evals.run.store import Sample
from starr.evals.stats import Paired, paired, paired_interval
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

    def strict_z(self, tests: int) -> float:
        """A quantile with which ``tests`` tests together err as rarely as one test of this bound."""
        return -NormalDist().inv_cdf((1 - self.confidence) / tests)

    def shown_by(self, pair: Paired) -> int | None:
        """About how many items show that the bound is kept, if more items show the same difference; None: no number."""
        room = pair.difference + self.points / 100
        if room <= 0:
            return None
        disagree = (pair.only_first + pair.only_second + 2) / (pair.n + 2)
        return math.ceil(disagree * (self.z / room) ** 2)


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate on the items that it has decoded so far."""

    run: Run
    samples: Sequence[Sample]
    figures: dict[str, Any]
    pair: Paired

    @property
    def n(self) -> int:
        """How many items it has decoded."""
        return len(self.samples)

    @property
    def both(self) -> float:
        """Share right and well formed."""
        return float(self.figures["both"])

    @property
    def forwards(self) -> float:
        """Mean forwards of an item."""
        return float(self.figures["forwards"])

    def order(self) -> tuple[float, float]:
        """Faster ones first; of equally fast ones the more accurate."""
        return self.forwards, -self.both


@dataclass(frozen=True, slots=True)
class Tuned:
    """What tuning found; ``winner`` is None where no candidate kept the bound, and the baseline is the answer."""

    winner: Scored | None
    candidates: Sequence[Scored]
    base: Run
    baseline: dict[str, Any]
    held_out: dict[str, Any] = field(default_factory=dict)

    @property
    def chosen(self) -> Run:
        """The fastest run that is known to keep the bound."""
        return self.base if self.winner is None else self.winner.run

    @property
    def nearest(self) -> Scored:
        """The candidate whose loss may be the smallest."""
        return max(self.candidates, key=lambda scored: scored.pair.interval[1])


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
    return Scored(run, samples, summarise(samples), pair)


@dataclass(frozen=True, slots=True)
class Race:
    """What all candidates share; ``z`` says how sure it must be that one has lost."""

    base: Run
    bound: Bound
    places: Sequence[int]
    measure: Measure
    z: float

    def score(self, run: Run, count: int) -> Scored:
        """A candidate on the first ``count`` items."""
        places = self.places[:count]
        return score(run, self.measure(run, places), self.measure(self.base, places), self.bound)

    def follow(self, scored: Scored, leader: Scored | None) -> Scored:
        """Decode twice as many items, again and again, until the candidate has lost or has decoded all."""
        while scored.n < len(self.places) and not self.has_lost(scored, leader):
            scored = self.score(scored.run, min(2 * scored.n, len(self.places)))
        return scored

    def has_lost(self, scored: Scored, leader: Scored | None) -> bool:
        """Whether a candidate is surely beyond the bound, or surely slower than the leader."""
        pair = scored.pair
        best = paired_interval(pair.n, pair.only_first, pair.only_second, self.z)[1]
        return 100 * best < -self.bound.points or (leader is not None and is_slower(scored, leader, self.z))


def is_slower(scored: Scored, leader: Scored, z: float) -> bool:
    """Whether a candidate surely needs more forwards than the leader, by the items that both have decoded."""
    theirs = {s.index: s.forwards for s in leader.samples}
    more = [s.forwards - theirs[s.index] for s in scored.samples]
    return len(more) > 1 and mean(more) > z * stdev(more) / math.sqrt(len(more))


def tune(
    runs: Sequence[Run], base: Run, bound: Bound, splits: tuple[Sequence[int], Sequence[int]], measure: Measure
) -> Tuned:
    """Race the candidates over the calibration places; score the winner on the held-out ones."""
    calibration, held_out = splits
    looks = 1 + math.ceil(math.log2(max(1.0, len(calibration) / FIRST_ROUND)))
    race = Race(base, bound, calibration, measure, bound.strict_z(2 * looks * len(runs)))
    started = sorted((race.score(run, FIRST_ROUND) for run in runs), key=Scored.order)
    winner, ended = None, []
    for start in started:
        scored = race.follow(start, winner)
        ended.append(scored)
        kept = scored.n == len(calibration) and bound.kept(scored.pair)
        if kept and (winner is None or scored.order() < winner.order()):
            winner = scored
    scores = check(winner.run, base, bound, held_out, measure) if winner is not None and held_out else {}
    return Tuned(winner, sorted(ended, key=Scored.order), base, summarise(measure(base, calibration)), scores)


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
    body = {"strategy": tuned.chosen.strategy, "cache": tuned.chosen.cache, "held_out": tuned.held_out, **facts}
    path.write_text(json.dumps(body, indent=1) + "\n")
