"""Which results are made, in which order, with how many items; what matters most comes first.

A page may stand in the plan several times with more items each time. All pages share the samples of a model and a
task, so a later step decodes only what is missing, and the work can be stopped after any step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

TASKS = ("word-problems", "list-functions", "lines", "grids")
LONG, SHORT = ("list-functions", "word-problems"), ("lines", "grids")  # by their canvas
ROWS = {"word-problems": 16, "list-functions": 16, "lines": 32, "grids": 32}  # the fastest of 8 to 128 on one core
FIRST = 300  # items of a point that is compared
WHOLE = 1000  # items of Table 1
TRACED = 100  # items of pages that need whole traces, and of the slowest points of the front
SLOW = {"confidence": FIRST}  # one token per step on a long canvas
SLOWER = (  # and those that need about as many forwards at every setting
    "remdm_llada", "remdm_llada:loops=4", "remdm_llada:loops=8", "remdm_llada:loops=16", "saber", "saber:least=1"
)  # fmt: skip
TWO = tuple(f"{name}:steps=64" for name in ("freedave", "margin", "entropy", "random", "origin", "remdm"))
SLOWEST = {  # points of the front with fewer items: more than 40 forwards a sample, or as many positions
    "list-functions": dict.fromkeys(SLOWER, TRACED),
    "word-problems": dict.fromkeys((*SLOWER, *TWO, "freedave:steps=32", "saber:least=3", "saber:least=4"), TRACED),
}


@dataclass(frozen=True)
class Step:
    """One page for one model and task over this many items; ``fewer`` of them for some runs."""

    page: str
    model: str
    task: str
    limit: int
    fewer: Mapping[str, int] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The page's file: word problems and the bundled model have the plain name; Table 1 is one page for all."""
        if self.page == "table1":
            return self.page
        parts = (self.page, "" if self.task == TASKS[0] else self.task, "" if self.model == "bundled" else self.model)
        return "-".join(part for part in parts if part)


def every_step(models: Sequence[str]) -> Iterator[Step]:
    """The plan; the first model has all pages, the others are in Table 1 and beside the fitted rule."""
    first, oracle = models[0], {"limit": FIRST}
    for model in models:
        yield from (Step("table1", model, task, WHOLE, oracle) for task in SHORT)
        yield from (Step("table1", model, task, FIRST) for task in LONG)
    yield from (Step("parallel", first, task, WHOLE) for task in SHORT)
    yield from (Step("parallel", first, task, FIRST) for task in LONG)
    for page in ("table3", "table2", "table5", "ablation", "limit"):
        yield Step(page, first, TASKS[0], FIRST)
    for model in models:
        yield from (Step("calibrated", model, task, FIRST) for task in TASKS)
    yield from (Step(page, first, TASKS[0], TRACED) for page in ("patterns", "zones", "case-study"))
    yield from (Step("limit", first, task, FIRST) for task in TASKS[1:])
    yield from (Step("front", first, task, FIRST) for task in SHORT)
    for model in models:
        yield from (Step("table1", model, task, WHOLE, SLOW | oracle) for task in LONG)
    yield Step("sensitivity", first, TASKS[0], FIRST)
    for model in models:
        yield from (Step("table1", model, task, WHOLE, oracle) for task in LONG)
    yield from (Step("front", first, task, FIRST, SLOWEST[task]) for task in LONG)


def chosen(models: Sequence[str], tasks: Sequence[str], pages: Sequence[str] | None, most: int | None) -> list[Step]:
    """The plan's steps of these tasks and pages, each with at most so many items, and none twice."""
    steps = [s for s in every_step(models) if s.task in tasks and (pages is None or s.page in pages)]
    if most is not None:
        steps = [
            replace(s, limit=min(s.limit, most), fewer={n: min(c, most) for n, c in s.fewer.items()}) for s in steps
        ]
    kept: list[Step] = []
    for step in steps:
        if step not in kept:
            kept.append(step)
    return kept
