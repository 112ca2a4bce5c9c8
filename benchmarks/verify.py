"""What was tried for ``verify``: `python -m benchmarks.verify ratio --task word-problems --count 100`.

Each study decodes the same fresh problems, of a seed that no table, fit or training uses, in several ways, and prints
one line for each: both in %, forwards, positions, revocations, and the share of revoked tokens that came back.
Variants of the rule are subclasses of its guest, so that the package has only the one that was chosen.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

import starr
from starr.decode import batch, extras
from starr.decode.advance import ended, first_true
from starr.decode.canvas import Canvas
from starr.decode.enforce import Step
from starr.decode.extras import GUESTS
from starr.decode.extras.queries import BEST, OWN
from starr.decode.extras.verify import UNREAD, Verify
from starr.evals.run.runner import decode, graded
from starr.evals.run.runs import Run, requests_for, settings_for
from starr.evals.tasks import Task
from starr.evals.tasks.bundled import SOURCES, item, load

SEED = 977
SHAKY = "verify.shaky"
DRAFTS = ("calibrated:budget=2", "hierarchy", "factor:factor=4", "starr", "threshold:tau=0.7")


def noted(canvas: Canvas, name: str) -> Tensor:
    """(B, C) bool: a note, nothing before the first step."""
    return canvas.notes.get(name, torch.zeros_like(canvas.masked))


class LastCheck(Verify):
    """A last check of every token, however sure."""

    safe: ClassVar[float] = 2.0


class Once(LastCheck):
    """Every token once, in the forward after its commit."""

    def asks(self, canvas: Canvas) -> Tensor:
        return super().asks(canvas) & noted(canvas, UNREAD)


class AtTheEnd(LastCheck):
    """New tokens, when the window is full or the text has ended."""

    def full(self, canvas: Canvas) -> Tensor:
        masked = (canvas.masked & canvas.in_window).any(dim=1)
        return (~masked | ended(canvas, first_true(canvas.masked), self.eos_ids))[:, None]

    def asks(self, canvas: Canvas) -> Tensor:
        return super().asks(canvas) & self.full(canvas)


class AgainAtTheEnd(AtTheEnd):
    """New tokens in every step, and all of them once more at the end."""

    def asks(self, canvas: Canvas) -> Tensor:
        held = Verify.asks(self, canvas)
        new = held & noted(canvas, UNREAD)
        return torch.where(self.full(canvas) & new.any(dim=1, keepdim=True), held, new)


class UntilSupported(LastCheck):
    """Every held token until the rest of the text gives it this probability."""

    support: ClassVar[float] = 0.999

    def asks(self, canvas: Canvas) -> Tensor:
        return super().asks(canvas) & (noted(canvas, UNREAD) | noted(canvas, SHAKY))

    def apply(self, canvas: Canvas, step: Step) -> Canvas:
        read, shaky = canvas.notes[BEST] >= 0, canvas.notes[OWN] < self.support
        kept = torch.where(read, shaky, noted(canvas, SHAKY)) & ~canvas.changed
        return super().apply(canvas.noted({SHAKY: kept}), step)


class Twice(Verify):
    rounds: ClassVar[int] = 2


class Sure(Verify):
    """Only where another token is sure."""

    def unsupported(self, canvas: Canvas) -> Tensor:
        return super().unsupported(canvas) & (canvas.notes[BEST] >= self.sure)


class SameBar(Verify):
    """A second commit is like a first one."""

    sure: ClassVar[float] = 0.0


class Half(Verify):
    sure: ClassVar[float] = 0.5


KINDS: dict[str, type[Verify]] = {
    kind.__name__: kind
    for kind in (Verify, LastCheck, Once, AtTheEnd, AgainAtTheEnd, UntilSupported, Twice, Sure, SameBar, Half)
}


@dataclass(frozen=True)
class Trial:
    """One way of decoding."""

    run: Run
    kind: type[Verify] = Verify

    @property
    def name(self) -> str:
        return self.run.name + ("" if self.kind is Verify else f" ({self.kind.__name__})")


def studies(drafts: Sequence[str], ratio: float, kinds: Sequence[str]) -> dict[str, list[Trial]]:
    """Every study by its name."""
    alone = [Trial(Run(draft)) for draft in drafts]
    plain = [Trial(Run(draft, verify=ratio)) for draft in drafts]
    return {
        "drafts": [pair for both in zip(alone, plain, strict=True) for pair in both],
        "ratio": [
            Trial(Run(draft, verify=r / 10), KINDS[kind])
            for draft in drafts
            for kind in kinds
            for r in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
        ],
        "kinds": [Trial(each.run, kind) for each in plain for kind in map(KINDS.__getitem__, kinds)],
        "blocks": [replace(each, run=replace(each.run, block_length=32)) for each in (*alone, *plain)],
        "caches": [replace(each, run=replace(each.run, cache=c)) for each in plain for c in ("dual", "prefix", "dkv")],
    }


@contextmanager
def guest(kind: type[Verify]) -> Iterator[None]:
    """Decode with another guest in the place of ``Verify``."""
    batch.GUESTS = extras.GUESTS = tuple(kind if each is Verify else each for each in GUESTS)  # type: ignore[misc, attr-defined]
    try:
        yield
    finally:
        batch.GUESTS = extras.GUESTS = GUESTS  # type: ignore[misc, attr-defined]


def fresh(name: str, count: int) -> Task:
    """Problems of the test split that are in no table."""
    known = load(name)
    return replace(known, items=[item(problem) for problem in SOURCES[name].generate(SEED, count, "test")])


def measure(model: Any, task: Task, trial: Trial, rows: int) -> dict[str, Any]:
    """Figures of one trial over all problems."""
    settings = settings_for(model, task)
    requests = requests_for(model, task.items, trial.run, settings)
    with guest(trial.kind):
        found = [
            graded(task, trial.run, place, task.items[place], made, seconds)
            for place, made, seconds in decode(model, requests, rows)
        ]
    n = len(found)
    return {
        "trial": trial.name,
        "both": round(100 * sum(s.both for s in found) / n, 1),
        "right": round(100 * sum(s.right for s in found) / n, 1),
        "forwards": round(sum(s.forwards for s in found) / n, 2),
        "positions": round(sum(s.positions for s in found) / n),
        "revocations": round(sum(s.revocations for s in found) / n, 2),
        "seconds": round(sum(s.elapsed for s in found), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Forms of verify, side by side on fresh problems.")
    parser.add_argument("study", nargs="?", default="drafts")
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--task", default="word-problems")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--ratio", type=float, default=0.3)
    parser.add_argument("--drafts", nargs="+", default=DRAFTS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    options = parser.parse_args()
    model = starr.load(options.model)
    task = fresh(options.task, options.count)
    for trial in studies(options.drafts, options.ratio, options.kinds)[options.study]:
        print(json.dumps(measure(model, task, trial, options.rows)), flush=True)


if __name__ == "__main__":
    main()
