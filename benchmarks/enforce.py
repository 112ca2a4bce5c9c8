"""What the rules of ``enforce`` cost and save: `python -m benchmarks.enforce --limit 100 --out docs/results`.

Every strategy that takes tokens back, under every mode, over the same items of a task: grades, forwards and
revocations, with the paired difference to ``strict`` in both. Runs that are in the file already, made with the same
weights over as many items, are not made again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import starr
from benchmarks.stored import Stored
from starr.evals.reproduce import context
from starr.evals.reproduce.bench import difference
from starr.evals.run.results import compare, summarise
from starr.evals.run.runner import decode_chunk
from starr.evals.run.runs import EvalSettings, Run, choose, request_for, settings_for
from starr.evals.run.store import Sample
from starr.evals.tasks import Task, load_task

MODES = ("strict", "bounded", "literal")
STRATEGIES = ("starr", "wino", "saber", "remdm", "remdm_llada", "hierarchy:revoke=true", "edit")
NOTES = (
    "strict: fewer revocations than commits in each step. bounded: a position is revoked at most twice, and strategies "
    "that end by themselves (wino, saber, remdm, remdm_llada, hierarchy) go by their own rule. literal: no progress "
    "rules; the last of as many forwards as there are masks commits what is left.",
    "edit revises tokens and revokes none, and saber always takes back fewer than it commits: the modes are the same "
    "for them. Modes that come to the same rules for a strategy are run once.",
    "n is the --limit that a row was made with.",
)


def measured(model: Any, task: Task, settings: EvalSettings, strategy: str, limit: int, rows: int) -> list[Sample]:
    """Samples of one strategy under the settings' mode."""
    return list(decode_chunk(model, task, settings, Run(strategy), choose(task, limit), rows))


def row(strategy: str, mode: str, samples: list[Sample], strict: list[Sample]) -> dict[str, Any]:
    found = summarise(samples)
    low, high = found["both_interval"]
    return {
        "strategy": strategy,
        "enforce": mode,
        "n": found["n"],
        "right %": round(100 * found["right"], 1),
        "formed %": None if found["formed"] is None else round(100 * found["formed"], 1),
        "both %": round(100 * found["both"], 1),
        "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "to strict": None if mode == "strict" else difference(compare(samples, strict)),
        "forwards": round(found["forwards"], 1),
        "revocations": round(found["revocations"], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Grades, forwards and revocations under every mode of enforce.")
    parser.add_argument("--model", default=None, help="a folder or a name; the bundled model if left out")
    parser.add_argument("--task", default="word-problems")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--strategies", nargs="+", default=STRATEGIES)
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder for enforce.json and enforce.md")
    options = parser.parse_args()
    model = starr.load(*([options.model] if options.model else []), dtype=options.dtype)
    task = load_task(options.task)
    settings = settings_for(model, task)
    command = f"python -m benchmarks.enforce --task {options.task} --limit {options.limit} --dtype {options.dtype}"
    where = context(command, f"{model.name} (weights {settings.weights}, {settings.dtype})", task.name)
    stored = Stored("enforce", f"What enforce lets through ({task.name})", "enforce.md", NOTES)
    rows = {(found["strategy"], found["enforce"]): found for found in stored.known(options.out, where)}
    for strategy in options.strategies:
        if all((strategy, mode) in rows and rows[strategy, mode]["n"] >= options.limit for mode in MODES):
            continue
        samples: dict[str, list[Sample]] = {}
        known: dict[Any, list[Sample]] = {}  # modes that come to the same rules give the same samples
        for mode in MODES:
            given = replace(settings, options=replace(settings.options, enforce=mode))
            asked = request_for(model, task.items[0], Run(strategy), given)
            rules = "literal" if asked.literal else mode, asked.forward_limit
            if rules not in known:
                known[rules] = measured(model, task, given, strategy, options.limit, options.rows)
            samples[mode] = known[rules]
            rows[strategy, mode] = row(strategy, mode, samples[mode], samples["strict"])
            print(json.dumps(rows[strategy, mode]), flush=True)
        stored.write(options.out, where, list(rows.values()))


if __name__ == "__main__":
    main()
