"""How long results will take, before anything is decoded: from samples that are there, else by guessed forwards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import mean

from benchmarks.plan import Step
from starr.cli.report import table
from starr.evals.run.bench import Bench
from starr.evals.run.progress import spell
from starr.evals.run.runs import Run
from starr.research.limit import LIMIT

SPEED = 20_000  # positions per second of one core, bundled model, bfloat16
SHARE = 0.08  # forwards of an adaptive strategy as a share of the canvas
ONE_BY_ONE = ("confidence", "entropy", "margin", "pc", "random", "origin")


def forwards_of(run: Run, canvas: int) -> float:
    """About how many forwards an item takes."""
    name, _, options = run.strategy.partition(":")
    steps = re.search(r"steps=(\d+)", options)
    if steps is not None:
        return float(steps[1])
    number = re.search(r"=(\d+)", options)
    if name in ONE_BY_ONE:
        return float(canvas)
    if name == "remdm_llada":  # one a step, and two for each loop
        return float(canvas + 2 * int(number[1] if number else 32))
    if name == "saber":  # at least so many a step, of which it takes some back
        return canvas / int(number[1] if number else 2)
    return max(3.0, SHARE * canvas) * (1.5 if name == LIMIT else 1.0)


def seconds_of(runs: Sequence[Run], bench: Bench, planned: Mapping[str, int] | None = None) -> float:
    """Seconds of one core for what the bench's store lacks, without the first items of a run that are ``planned``."""
    canvas, total = bench.settings.max_tokens, 0.0
    chosen = bench.items
    for run in runs:
        there = bench.store.of(run.name)
        some = chosen[(planned or {}).get(run.name, 0) : bench.count(run)]
        missing = sum(not bench.store.has(run.name, index) for index, _ in some)
        prompt = 70 if canvas > 96 else 35
        guess = forwards_of(run, canvas) * (canvas + prompt) / SPEED
        total += missing * (mean(sample.elapsed for sample in there) if there else guess)
    return total


def seconds_of_all(steps: Sequence[tuple[Step, Bench, Sequence[Run]]]) -> list[float]:
    """Seconds of one core for each step, counting what steps share at the first of them."""
    planned: dict[tuple[str, str], dict[str, int]] = {}
    found = []
    for step, bench, runs in steps:
        before = planned.setdefault((step.model, step.task), {})
        found.append(seconds_of(runs, bench, before))
        before |= {run.name: max(before.get(run.name, 0), bench.count(run)) for run in runs}
    return found


def table_of(steps: Sequence[Step], seconds: Sequence[float], workers: int) -> str:
    """Every step with its minutes on one core, and the time for all."""
    rows = [
        (step.stem, step.model, step.task, step.limit, f"{each / 60:.1f}")
        for step, each in zip(steps, seconds, strict=True)
    ]
    whole = spell(sum(seconds) / workers)
    head = ("page", "model", "task", "n", "minutes of a core")
    return f"{table(head, rows)}\nAbout {whole} with {workers} workers."
