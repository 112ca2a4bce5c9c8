"""What the rules of ``enforce`` cost and save: `python -m benchmarks.enforce --limit 300 --out docs/results`.

Strategies that take tokens back, under every mode, over the same items of a task: grades, forwards and revocations,
with the paired difference to ``strict`` in both. Modes that come to the same for a strategy are decoded once. The file
and its page are written after every strategy; what is there already, made with the same weights over as many items, is
not made again. On one core eight rows at once are quickest: the states of more do not stay in its cache.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import starr
from benchmarks.stored import Stored
from starr.evals.run.bench import difference
from starr.evals.run.results import compare, summarise
from starr.evals.run.runner import decode_chunk
from starr.evals.run.runs import EvalSettings, Run, choose, requests_for, settings_for
from starr.evals.run.store import Sample
from starr.evals.tasks import Task, load_task
from starr.research.reproduce import context

MODES = ("strict", "bounded", "literal")
STRATEGIES = ("starr", "edit", "wino", "saber", "remdm:steps=64")
ALIKE = ("saber", "edit")  # every mode lets all that they decide through
NOTES = (
    "strict: fewer revocations than commits in each step. bounded: a position is revoked at most twice, and strategies "
    "that end by themselves (wino, saber, remdm, edit) go by their own rule. literal: no progress rules; the last of "
    "as many forwards as there are masks commits what is left.",
    "default: what enforce=safe comes to, a strategy's own rule where it ends by itself, else strict.",
    "edit revises tokens and revokes none, and saber always takes back fewer than it commits: the modes are the same "
    "for them.",
    "n is the --limit that a row was made with.",
)


def modes_of(model: Any, task: Task, settings: EvalSettings, strategy: str) -> dict[str, tuple[EvalSettings, Any]]:
    """The settings of each mode, the default one included, and what it comes to: equal for modes that are the same."""
    found: dict[str, tuple[EvalSettings, Any]] = {}
    for mode in (*MODES, "safe"):
        given = replace(settings, options=replace(settings.options, enforce=mode))
        asked = requests_for(model, task.items[:1], Run(strategy), given)[0]
        rules = "literal" if asked.literal else "bounded" if mode == "bounded" else "strict"
        found[mode] = given, strategy in ALIKE or (rules, asked.step_limit)
    return found


def row(strategy: str, mode: str, samples: list[Sample], strict: list[Sample], default: bool) -> dict[str, Any]:
    found = summarise(samples)
    low, high = found["both_interval"]
    return {
        "strategy": strategy,
        "enforce": mode,
        "default": "yes" if default else "",
        "n": found["n"],
        "right %": round(100 * found["right"], 1),
        "formed %": None if found["formed"] is None else round(100 * found["formed"], 1),
        "both %": round(100 * found["both"], 1),
        "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "to strict": None if samples is strict else difference(compare(samples, strict)),
        "forwards": round(found["forwards"], 1),
        "revocations": round(found["revocations"], 1),
    }


def rows_of(
    model: Any, task: Task, settings: EvalSettings, strategy: str, work: tuple[int, int]
) -> list[dict[str, Any]]:
    """A strategy's row for every mode; ``work`` is how many items, and how many of them at once."""
    limit, at_once = work
    modes = modes_of(model, task, settings, strategy)
    known: dict[Any, list[Sample]] = {}
    rows = []
    for mode in MODES:
        given, rules = modes[mode]
        if rules not in known:
            known[rules] = list(decode_chunk(model, task, given, Run(strategy), choose(task, limit), at_once))
        rows.append(row(strategy, mode, known[rules], known[modes["strict"][1]], rules == modes["safe"][1]))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Grades, forwards and revocations under every mode of enforce.")
    parser.add_argument("--model", default=None, help="a folder or a name; the bundled model if left out")
    parser.add_argument("--task", default="word-problems")
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--rows", type=int, default=8, help="items decoded at once")
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
        if all(rows.get((strategy, mode), {"n": 0})["n"] >= options.limit for mode in MODES):
            continue
        made = rows_of(model, task, settings, strategy, (options.limit, options.rows))
        rows |= {(strategy, found["enforce"]): found for found in made}
        stored.write(options.out, where, list(rows.values()))


if __name__ == "__main__":
    main()
