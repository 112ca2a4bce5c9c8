"""Prints the model card's tables: ``python -m training.evaluate [--limit N] [--strategy S …] [--out results.json]``.

No cache, greedy, on the fixed test problems; accuracy in percent with Wilson's 95 % interval. Samples are kept in
``--samples``: an interrupted evaluation goes on where it stopped, one with a higher limit adds to them. Another canvas
needs another folder of samples.
``--show FILE`` prints the tables of a stored result again without decoding.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import starr
from starr.evals.evaluate import open_store
from starr.evals.reproduce.bench import Bench, Measured, difference
from starr.evals.results import compare
from starr.evals.runs import settings_for
from starr.evals.stats import wilson
from starr.evals.tasks import load_task

TASKS = ("word-problems", "list-functions")
STRATEGIES = ("confidence", "threshold:tau=0.9", "threshold:tau=0.7", "threshold:tau=0.5", "starr")


def open_bench(model: starr.Model, name: str, options: argparse.Namespace) -> Bench:
    task = load_task(name)
    settings = settings_for(model, task, max_tokens=options.canvas)
    store = open_store(options.samples / settings.folder, settings, [], resume=True)
    return Bench(model, task, settings, store, options.limit, options.batch_size)


def record(bench: Bench, strategy: str, found: Measured) -> dict[str, Any]:
    """Counts per number of steps, and the paired difference to ``confidence`` where that was decoded."""
    by_steps: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    items = dict(bench.items)
    for sample in found.samples:
        counts = by_steps[items[sample.index].facts["problem"].steps]
        counts[0] += sample.correct
        counts[1] += 1
    base = bench.store.of("confidence")
    pair = compare(found.samples, base) if base and strategy != "confidence" else None
    return {
        "task": bench.task.name,
        "canvas": bench.settings.max_tokens,
        "strategy": strategy,
        "n": found.figures["n"],
        "right": found.figures["correct"],
        "by_steps": {str(steps): by_steps[steps] for steps in sorted(by_steps)},
        "forwards": found.figures["forwards"],
        "tokens": found.figures["tokens"],
        "to_confidence": pair and {name: pair[name] for name in ("n", "difference", "interval")},
    }


def percent(right: int, n: int) -> str:
    low, high = wilson(right, n)
    return f"{100 * right / n:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def paired(pair: dict[str, Any] | None) -> str:
    return "–" if pair is None else f"{difference(pair)}, n = {pair['n']}"


def run_cells(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["task"], record["canvas"], f"`{record['strategy']}`"


def tables(records: Sequence[dict[str, Any]]) -> str:
    """Two Markdown tables: per strategy, and per number of steps."""
    lines = [
        "| task | canvas | strategy | n | accuracy % (95 % interval) | paired, to `confidence` | forwards "
        "| tokens/forward |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in records:
        cells = (*run_cells(r), r["n"], percent(r["right"], r["n"]), paired(r["to_confidence"]))
        lines.append(f"| {' | '.join(map(str, cells))} | {r['forwards']:.1f} | {r['tokens'] / r['forwards']:.2f} |")
    lines += ["", "| task | canvas | strategy | steps | n | accuracy % (95 % interval) |", "|---|---|---|---|---|---|"]
    for r in records:
        for steps, (right, n) in r["by_steps"].items():
            lines.append(f"| {' | '.join(map(str, (*run_cells(r), steps, n, percent(right, n))))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None, help="a folder; the bundled model without it")
    parser.add_argument("--dtype", default=None, help="float32 on CPU without it")
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--strategy", action="append")
    parser.add_argument("--canvas", type=int, default=128)
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--samples", type=Path, default=Path("runs/card"), help="the folder of all samples")
    parser.add_argument("--out", type=Path, default=None, help="a JSON file; records in it of other runs are kept")
    parser.add_argument("--show", type=Path, default=None)
    options = parser.parse_args()
    if options.show:
        print(tables(json.loads(options.show.read_text())))
        return
    model = starr.load(options.model, dtype=options.dtype)
    earlier = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    records = {(r["task"], r["canvas"], r["strategy"]): r for r in earlier}
    for name in options.task or TASKS:
        bench = open_bench(model, name, options)
        for strategy in options.strategy or STRATEGIES:
            found = bench.measure([bench.run(strategy)])[0]
            records[name, options.canvas, strategy] = record(bench, strategy, found)
            if options.out:
                options.out.write_text(json.dumps(list(records.values()), indent=1) + "\n")
    print(tables(list(records.values())))


if __name__ == "__main__":
    main()
