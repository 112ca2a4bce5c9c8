"""Writes what the bundled model knows: word pairs and first words of its prompts, which ``starr.model.known`` reads.

    python -m training.known src/starr/model/bundled/known.json

Twice as many prompts give the same pairs, so the file depends on the tasks alone. The limit stands far above the
strangest of the 1,000 test prompts of each task (0.04) and far below the prompts of other kinds in
``tests/model/test_known.py`` (0.3 and more).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from starr.evals.tasks import grids, lines, list_functions, word_problems
from starr.evals.tasks.problem import Problem
from starr.model.known import ASKS, list_pairs, split_lines

ABOUT = "word problems, short functions over lists, lines of names and small grids"
COUNT, SEED, LIMIT = 10_000, 7, 0.2


def problems() -> Iterator[Problem]:
    """What training draws from."""
    for task in (word_problems, list_functions, lines, grids):
        yield from task.generate(SEED, COUNT, "train")
    yield from word_problems.generate_small(SEED, COUNT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    found: set[str] = set()
    stories: set[str] = set()
    for problem in problems():
        found.update(list_pairs(problem.prompt))
        if problem.prompt.endswith(ASKS):
            stories.add(split_lines(problem.prompt)[0][1])
        if problem.task == word_problems.TASK:  # texts with holes are made of its prompts and answers
            found.update(list_pairs(f"{problem.prompt} {problem.answer}"), list_pairs(problem.answer))
    body = {"about": ABOUT, "turns": 1, "limit": LIMIT, "stories": sorted(stories), "pairs": sorted(found)}
    options.out.write_text(json.dumps(body, ensure_ascii=False, indent=0) + "\n", encoding="utf8")
    print(f"{len(found)} pairs -> {options.out}")


if __name__ == "__main__":
    main()
