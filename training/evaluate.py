"""Prints the model card's tables: ``python -m training.evaluate [--limit N] [--strategy S …] [--out results.json]``.

Canvas of 128, no cache, greedy, on the fixed test problems; accuracy in percent with Wilson's 95 % interval.
``--show FILE`` prints the tables of a stored result again without decoding.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import starr
from starr.evals import list_functions, word_problems
from starr.evals.stats import wilson

TASKS = {module.TASK: module for module in (word_problems, list_functions)}
STRATEGIES = ("confidence", "threshold:tau=0.9", "threshold:tau=0.7", "threshold:tau=0.5", "starr")
CANVAS = 128


def evaluate(model, task: str, strategy: str, limit: int, batch_size: int) -> dict:
    """Decode and grade the first ``limit`` test problems; one record with counts per number of steps."""
    module = TASKS[task]
    problems = module.load()[:limit]
    begin = time.perf_counter()
    prompts = [problem.prompt for problem in problems]
    results = starr.generate(model, prompts, strategy=strategy, max_tokens=CANVAS, batch_size=batch_size)
    seconds = time.perf_counter() - begin
    by_steps: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for problem, result in zip(problems, results, strict=True):
        by_steps[problem.steps][0] += module.grade(problem, result.text)
        by_steps[problem.steps][1] += 1
    return {
        "task": task,
        "strategy": strategy,
        "n": len(problems),
        "right": sum(right for right, _ in by_steps.values()),
        "by_steps": {str(steps): by_steps[steps] for steps in sorted(by_steps)},
        "forwards": sum(result.stats.forwards for result in results) / len(results),
        "tokens": sum(result.stats.tokens for result in results) / len(results),
        "seconds": seconds,
    }


def percent(right: int, n: int) -> str:
    low, high = wilson(right, n)
    return f"{100 * right / n:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def tables(records: list[dict]) -> str:
    """Two Markdown tables: per strategy, and per number of steps."""
    lines = [
        "| task | strategy | n | accuracy % (95 % interval) | forwards | tokens per forward |",
        "|---|---|---|---|---|---|",
    ]
    for r in records:
        speed = f"{r['forwards']:.1f} | {r['tokens'] / r['forwards']:.2f}"
        lines.append(f"| {r['task']} | {r['strategy']} | {r['n']} | {percent(r['right'], r['n'])} | {speed} |")
    lines += ["", "| task | strategy | steps | n | accuracy % (95 % interval) |", "|---|---|---|---|---|"]
    for r in records:
        for steps, (right, n) in r["by_steps"].items():
            lines.append(f"| {r['task']} | {r['strategy']} | {steps} | {n} | {percent(right, n)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None, help="a folder; the bundled model without it")
    parser.add_argument("--task", action="append", choices=sorted(TASKS))
    parser.add_argument("--strategy", action="append")
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--dtype", default=None)
    parser.add_argument("--out", type=Path, default=None, help="a JSON file that collects the records")
    parser.add_argument("--show", type=Path, default=None)
    options = parser.parse_args()
    if options.show:
        print(tables(json.loads(options.show.read_text())))
        return
    model = starr.load(options.model, dtype=options.dtype)
    records = []
    for strategy in options.strategy or STRATEGIES:
        for task in options.task or TASKS:
            records.append(evaluate(model, task, strategy, options.limit, options.batch_size))
            if options.out:
                options.out.write_text(json.dumps(records, indent=1) + "\n")
    print(tables(records))


if __name__ == "__main__":
    main()
