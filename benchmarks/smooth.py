"""What smoothing is worth: `python -m benchmarks.smooth --limit 300 --out docs/results`.

Strategies with and without dInfer's smoothed iteration (``starr.decode.extras.smoothing``) over the same items of a
task: grades and forwards, with the paired difference to the same strategy without it. The last lines say for each
family whether smoothing gains: whether some weight needs fewer forwards for texts as good as those of plain decoding at
any of its settings, or gives better texts in no more forwards.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import starr
from benchmarks.stored import Stored
from starr.evals.run.bench import difference
from starr.evals.run.results import compare, summarise
from starr.evals.run.runner import decode_chunk
from starr.evals.run.runs import EvalSettings, Run, choose, settings_for
from starr.evals.run.store import Sample
from starr.evals.stats import Z95
from starr.evals.tasks import Task, load_task
from starr.research.reproduce import context

AS_GOOD = -0.03  # both: the whole interval of the difference lies above this
WEIGHTS = (0.0, 0.3, 1.0)
STRATEGIES = ("threshold", "threshold:tau=0.97", "threshold:tau=0.7", "starr", "calibrated")
NOTES = (
    "smoothing: how much of the predicted embeddings is added to those of masks. dInfer's own weight rises from 0.15 "
    "to 0.3 over the forwards.",
    "to plain: the paired difference to the same strategy without smoothing, in both (points) and in forwards.",
    "A smoothed way gains over a plain one of its family that no other plain one beats in both figures if the 95 % "
    "interval of forwards lies below 0 and that of both above -3 points, or that of both above 0 and that of forwards "
    "not above 0; and if no plain one beats it.",
)


@dataclass(frozen=True)
class Way:
    """A strategy, and how much masks are given of what was predicted there."""

    strategy: str
    smoothing: float = 0.0

    @property
    def family(self) -> str:
        return self.strategy.partition(":")[0]

    @property
    def name(self) -> str:
        return f"{self.strategy} with smoothing {self.smoothing:g}"


@dataclass(frozen=True)
class Difference:
    """One way minus another over the same items."""

    both: Mapping[str, Any]
    forwards: float
    interval: tuple[float, float]  # of forwards, 95 %

    @classmethod
    def of(cls, first: Sequence[Sample], second: Sequence[Sample]) -> Difference:
        there = {sample.index: sample.forwards for sample in second}
        more = [sample.forwards - there[sample.index] for sample in first]
        half = Z95 * stdev(more) / len(more) ** 0.5 if len(more) > 1 else float("inf")
        return cls(compare(first, second), mean(more), (mean(more) - half, mean(more) + half))

    @property
    def gains(self) -> bool:
        """Faster with texts as good, or better texts as fast."""
        low = self.both["interval"][0]
        return (self.interval[1] < 0 and low > AS_GOOD) or (low > 0 and self.interval[1] <= 0)

    @property
    def beats(self) -> bool:
        """At least as good in both and in forwards, and better in one."""
        better = self.both["difference"]
        return better >= 0 >= self.forwards and (better > 0 or self.forwards < 0)

    @property
    def told(self) -> tuple[str, str]:
        """*Both* in points, and forwards, each with its interval."""
        low, high = self.interval
        return difference(dict(self.both)), f"{self.forwards:+.2f} ({low:+.2f} to {high:+.2f})"


def row(way: Way, found: Sequence[Sample], plain: Sequence[Sample]) -> dict[str, Any]:
    result = summarise(found)
    low, high = result["both_interval"]
    told = Difference.of(found, plain).told if way.smoothing else (None, None)
    return {
        "strategy": way.strategy,
        "smoothing": way.smoothing,
        "n": result["n"],
        "right %": round(100 * result["right"], 1),
        "formed %": None if result["formed"] is None else round(100 * result["formed"], 1),
        "both %": round(100 * result["both"], 1),
        "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "both to plain": told[0],
        "forwards": round(result["forwards"], 2),
        "forwards to plain": told[1],
    }


def verdict(family: str, found: Mapping[Way, Sequence[Sample]]) -> str:
    """Which smoothed ways of a family gain over which plain ones."""
    of_family = [way for way in found if way.family == family]
    plain = [way for way in of_family if not way.smoothing]
    front = [way for way in plain if not any(Difference.of(found[o], found[way]).beats for o in plain)]
    gains = []
    for way in (way for way in of_family if way.smoothing):
        if any(Difference.of(found[other], found[way]).beats for other in plain):
            continue
        differences = {other: Difference.of(found[way], found[other]) for other in front}
        beaten = [(other, d.told) for other, d in differences.items() if d.gains]
        gains += [f"{way.name} against {other.strategy}: both {b}, forwards {f}" for other, (b, f) in beaten]
    return f"Verdict on {family}: " + (f"a gain. {'; '.join(gains)}." if gains else "no gain.")


def decoded(
    model: Any, task: Task, settings: EvalSettings, way: Way, limit: int, at_once: int
) -> tuple[Way, list[Sample]]:
    """A way's samples."""
    given = replace(settings, options=replace(settings.options, smoothing=way.smoothing))
    return way, list(decode_chunk(model, task, given, Run(way.strategy), choose(task, limit), at_once))


def main() -> None:
    parser = argparse.ArgumentParser(description="Grades and forwards with and without smoothing.")
    parser.add_argument("--task", default="word-problems")
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--rows", type=int, default=8, help="items decoded at once")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder for smooth.json and smooth.md")
    options = parser.parse_args()
    model, task = starr.load(dtype=options.dtype), load_task(options.task)
    settings = settings_for(model, task)
    command = f"python -m benchmarks.smooth --task {options.task} --limit {options.limit} --dtype {options.dtype}"
    where = context(command, f"{model.name} (weights {settings.weights}, {settings.dtype})", task.name)
    found: dict[Way, Sequence[Sample]] = {}
    rows: list[dict[str, Any]] = []
    for way in (Way(strategy, weight) for strategy in STRATEGIES for weight in WEIGHTS):
        found |= [decoded(model, task, settings, way, options.limit, options.rows)]
        rows.append(row(way, found[way], found[Way(way.strategy)]))
        print(json.dumps(rows[-1]), flush=True)
    verdicts = [verdict(family, found) for family in dict.fromkeys(way.family for way in found)]
    title = f"Smoothed iteration ({task.name}, n = {options.limit})"
    Stored("smooth", title, "smooth.md", (*NOTES, *verdicts)).write(options.out, where, rows)
    print("\n".join(verdicts))


if __name__ == "__main__":
    main()
