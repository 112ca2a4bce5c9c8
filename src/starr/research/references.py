"""Grade every benchmark's own solutions, and wrong ones: ``python -m starr.research.references [TASK …] [--every N]``.

A grader that is right gives 100 % to the first and 0 to the second; the time of one sequential run is printed too.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

from starr.evals.tasks import MODULES, Item, Task, load_task


@dataclass(frozen=True, slots=True)
class Tally:
    """How many of a task's items were graded correct."""

    task: str
    n: int
    right: int
    failing: tuple[str, ...]
    seconds: float


def wrong_answer(task: str, item: Item) -> str:
    """An answer of the right shape that no test accepts."""
    if task == "humaneval":
        return "    return object()\n"
    if task == "mbpp":
        name = item.facts["tests"].split("assert", 1)[1].replace("(", " ").split()[0]
        return f"def {name}(*_, **__):\n    return object()\n"
    if task == "list-functions":
        return "def f(xs):\n    return object()\n"
    return "Final Answer: The final answer is $-987654321$. I hope it is correct.\n#### -987654321"


def tally(task: Task, every: int = 1, *, wrong: bool = False) -> Tally:
    """Grade the reference, or a wrong answer, of every ``every``-th item, one after the other."""
    start = time.perf_counter()
    chosen = task.items[::every]
    failing = [
        item.id
        for item in chosen
        if not task.grade(item, wrong_answer(task.name, item) if wrong else item.reference).scores[task.primary]
    ]
    seconds = time.perf_counter() - start
    return Tally(task.name, len(chosen), len(chosen) - len(failing), tuple(failing), seconds)


def main() -> None:
    """Grade the references of tasks, and wrong answers, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"any of {', '.join(MODULES)}")
    parser.add_argument("--every", type=int, default=1, help="grade every N-th item")
    options = parser.parse_args()
    print("| task | n | references right | wrong answers right | seconds (references) |\n|---|---|---|---|---|")
    for name in options.tasks or MODULES:
        task = load_task(name)
        good, bad = tally(task, options.every), tally(task, options.every, wrong=True)
        print(f"| {name} | {good.n} | {good.right} | {bad.right} | {good.seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
