"""Writes the 1,000 fixed test problems of each task into the package: ``python -m training.testset``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from starr.evals import tasks
from starr.evals.tasks import grids, lines, list_functions, word_problems
from starr.evals.tasks.problem import Problem, dump

SEED, COUNT = 2026, 1000


def distinct(module, count: int) -> list[Problem]:
    """The first ``count`` problems of the test split whose prompts differ; as many of each kind that a task names."""
    found: dict[str, Problem] = {}
    most = -(-count // len(module.KINDS)) if hasattr(module, "KINDS") else count
    seen: Counter[str] = Counter()
    for problem in module.generate(SEED, 10 * count, "test"):
        if problem.prompt not in found and seen[problem.kind] < most and len(found) < count:
            found[problem.prompt] = problem
            seen[problem.kind] += 1
    return list(found.values())


def main() -> None:
    folder = Path(tasks.__file__).parent / "data"
    for module in (word_problems, list_functions, lines, grids):
        path = folder / f"{module.TASK}.jsonl"
        path.write_text(dump(distinct(module, COUNT)), encoding="utf-8")
        print(path.name, len(path.read_text().splitlines()))


if __name__ == "__main__":
    main()
