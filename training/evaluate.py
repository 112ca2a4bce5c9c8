"""Prints a model card's tables: ``python -m training.evaluate [--limit N] [--strategy S …] [--out results.json]``.

``--model bundled-blocks`` takes another of the package's models. No cache (``exact`` for a block-causal model), greedy,
on the first N fixed test problems of each task; right, formed and both in percent with Wilson's 95 % interval for both.
Samples are kept in ``--samples``: an interrupted evaluation goes on where it stopped, one with a
higher limit adds to them. ``--show FILE`` prints the tables of a stored result again without decoding.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import starr
from starr.evals.run.bench import Bench, Measured, difference
from starr.evals.run.evaluate import open_store
from starr.evals.run.results import compare
from starr.evals.run.runs import settings_for
from starr.evals.tasks import load_task

TASKS = ("word-problems", "list-functions", "lines", "grids")
# The last of these commits four tokens per step, whatever their confidence.
STRATEGIES = ("confidence", "threshold:tau=0.95", "threshold:tau=0.9", "threshold:tau=0.5", "starr", "static")


def open_bench(model: starr.Model, name: str, options: argparse.Namespace) -> Bench:
    task = load_task(name)
    settings = settings_for(model, task)
    store = open_store(options.samples / settings.folder, settings, [], resume=True)
    return Bench(model, task, settings, store, options.limit, options.batch_size)


def form_of(strategy: str, canvas: int) -> str:
    """``static`` is ``confidence`` with a quarter of the canvas as its steps."""
    return f"confidence:steps={canvas // 4}" if strategy == "static" else strategy


def record(bench: Bench, strategy: str, found: Measured) -> dict[str, Any]:
    """Grades per kind, forwards, and the paired difference to ``confidence`` where that was decoded."""
    figures = found.figures
    base = bench.store.of(bench.run("confidence", bench.model.spec.habits.cache).name)
    pair = compare(found.samples, base) if base and strategy != "confidence" else None
    kinds = {
        kind: {name: part[name] for name in ("n", "right", "formed", "both", "both_interval", "forwards")}
        for kind, part in figures["kinds"].items()
    }
    names = ("n", "right", "formed", "both", "both_interval", "forwards", "tokens_per_forward")
    return {
        "task": bench.task.name,
        "canvas": bench.settings.max_tokens,
        "strategy": strategy,
        **{name: figures[name] for name in names},
        "kinds": kinds,
        "to_confidence": pair and {name: pair[name] for name in ("n", "difference", "interval")},
    }


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def grades(part: dict[str, Any]) -> tuple[str, ...]:
    low, high = part["both_interval"]
    both = f"{percent(part['both'])} ({percent(low)} to {percent(high)})"
    return percent(part["right"]), percent(part["formed"]), both


def paired(pair: dict[str, Any] | None) -> str:
    return "–" if pair is None else f"{difference(pair)}, n = {pair['n']}"


def tables(records: Sequence[dict[str, Any]]) -> str:
    """Two Markdown tables: per strategy, and per kind of problem."""
    head = ("task", "canvas", "strategy", "n", "right %", "formed %", "both % (95 % interval)", "both, to `confidence`",
            "forwards", "tokens/forward")  # fmt: skip
    lines = [line(head), "|---" * len(head) + "|"]
    for r in records:
        lines.append(
            line((r["task"], r["canvas"], f"`{form_of(r['strategy'], r['canvas'])}`", r["n"], *grades(r),
                  paired(r["to_confidence"]), f"{r['forwards']:.1f}", f"{r['tokens_per_forward']:.2f}"))
        )  # fmt: skip
    head = ("task", "strategy", "kind", "n", "right %", "formed %", "both % (95 % interval)", "forwards")
    lines += ["", line(head), "|---" * len(head) + "|"]
    for r in records:
        for kind, part in r["kinds"].items():
            name = f"`{form_of(r['strategy'], r['canvas'])}`"
            lines.append(line((r["task"], name, kind, part["n"], *grades(part), f"{part['forwards']:.1f}")))
    return "\n".join(lines)


def line(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None, help="a folder, bundled-dream or bundled-blocks; bundled without it")
    parser.add_argument("--dtype", default=None, help="what is fastest here without it")
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--strategy", action="append")
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
    records = {(r["task"], r["strategy"]): r for r in earlier}
    for name in options.task or TASKS:
        bench = open_bench(model, name, options)
        for strategy in options.strategy or STRATEGIES:
            form = form_of(strategy, bench.settings.max_tokens)
            found = bench.measure([bench.run(form, model.spec.habits.cache)])[0]
            records[name, strategy] = record(bench, strategy, found)
            if options.out:
                options.out.write_text(json.dumps(list(records.values()), indent=1) + "\n")
    print(tables(list(records.values())))


if __name__ == "__main__":
    main()
