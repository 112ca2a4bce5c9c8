"""Writes the 1,000 fixed test problems of each task into the package: ``python -m training.testset``."""

from __future__ import annotations

from pathlib import Path

from starr import evals
from starr.evals import list_functions, word_problems
from starr.evals.problem import Problem, dump

SEED, COUNT = 2026, 1000


def distinct(module, count: int) -> list[Problem]:
    """The first ``count`` problems of the test split whose prompts differ."""
    found: dict[str, Problem] = {}
    for problem in module.generate(SEED, 10 * count, "test"):
        found.setdefault(problem.prompt, problem)
        if len(found) == count:
            break
    return list(found.values())


def main() -> None:
    folder = Path(evals.__file__).parent / "data"
    for module in (word_problems, list_functions):
        path = folder / f"{module.TASK}.jsonl"
        path.write_text(dump(distinct(module, COUNT)), encoding="utf-8")
        print(path.name, len(path.read_text().splitlines()))


if __name__ == "__main__":
    main()
