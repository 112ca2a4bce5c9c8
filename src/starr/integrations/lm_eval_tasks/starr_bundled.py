"""Rows and grades of the packaged benchmarks for lm_eval: the same code as ``starr eval``."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from datasets import Dataset

from starr.evals.tasks import Task, load_task


@cache
def task(name: str) -> Task:
    """One of our tasks, by name."""
    return load_task(name)


def rows(name: str, **_: Any) -> dict[str, Dataset]:
    """The test split; other keywords are lm_eval's metadata."""
    items = enumerate(task(name).items)
    columns = [{"task": name, "index": i, "id": item.id, "prompt": item.chat, "gold": item.gold} for i, item in items]
    return {"test": Dataset.from_list(columns)}


def scores(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """right, formed and both, as ``starr eval`` has them."""
    bench, text = task(doc["task"]), results[0]
    item = bench.items[doc["index"]]
    right = bench.grade(item, text).scores[bench.primary]
    formed = bench.formed is None or bench.formed(item, text)
    return {"right": float(right), "formed": float(formed), "both": float(right and formed)}


word_problems = partial(rows, "word-problems")
list_functions = partial(rows, "list-functions")
lines = partial(rows, "lines")
grids = partial(rows, "grids")
