"""What a fitted rule owes to its prompts and features: `python -m benchmarks.calibration --limit 300`.

Prompts of all tasks are visited once, then by the first rule itself, as ``starr calibrate`` does. Rules are fitted on
parts of these visits: on all tasks, on one task each, on fewer prompts, without one group of features each, and with
less of a network. Every rule decodes the same items of every task with its own budget. Visits and rules are kept in
``--work``; rows that were made before with the same weights are not made again. With ``--foreign`` the rule for all
tasks of another model is tried as well.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import starr
from benchmarks.plan import ROWS, TASKS
from benchmarks.stored import Stored
from starr.evals.run.bench import difference
from starr.evals.run.results import compare, summarise
from starr.evals.run.runner import decode_chunk
from starr.evals.run.runs import Run, choose, settings_for
from starr.evals.run.store import Sample
from starr.evals.tasks import load_task
from starr.fit.calibrate.fit import Recipe
from starr.fit.calibrate.prompts import task_prompts
from starr.fit.calibrate.work import CalibrationPlan, Visited, claim, fit_rule, score_rule, visit_rounds
from starr.research.reproduce import context

BASE = "threshold:tau=0.9"
FEWER = (50, 200)
GROUPS = ("past", "near", "token", "row")
NOTES = (
    "fitted on: the prompts whose visits a rule was fitted on; the rule of all tasks visited the second round for all. "
    "without: a group of features that was left out (starr.decode.strategies.calibrated.features).",
    "Every rule commits within a budget of 0.3 a step; without harm, where a harmful commit counts once instead of ten "
    "times, within 0.1, which needs about as many forwards.",
    "held-out loss: the logistic loss of P over doubtful masks of prompts that were left out of the fit; it can be "
    "compared between rules of the same prompts.",
    f"to threshold: the paired difference in both, and the ratio of forwards, to {BASE} over the same items.",
)


@dataclass(frozen=True)
class Variant:
    """Which visits a rule is fitted on, and how."""

    name: str
    tasks: tuple[str, ...] = TASKS
    prompts: int | None = None
    recipe: Recipe = Recipe()  # noqa: RUF009  # frozen
    bars: tuple[tuple[str, float], ...] = ()  # of the rule, instead of its own

    @property
    def file(self) -> str:
        return self.name.replace(" ", "-") + ".json"


ALL = Variant("all tasks")


def variants() -> Iterator[Variant]:
    yield ALL
    yield from (Variant(f"{count} prompts", prompts=count) for count in FEWER)
    yield from (Variant(task, (task,)) for task in TASKS)
    yield from (Variant(f"all without {group}", recipe=Recipe(without=(group,))) for group in GROUPS)
    yield Variant("all without harm", bars=(("harm", 1.0), ("budget", 0.1)))
    yield Variant("all with one network", recipe=Recipe(networks=1))
    yield Variant("all with 8 units", recipe=Recipe(hidden=8))


def rule_file(model: Any, variant: Variant, rounds: list[Visited], work: Path) -> Path:
    """A variant's rule, fitted on its part of the visits and written; prompts of the tasks come in turn."""
    path = work / variant.file
    if path.exists():
        return path
    parts = []
    for seen in rounds:
        place = seen["prompt"]
        task = place % len(TASKS)
        wanted = sum(task == TASKS.index(name) for name in variant.tasks).bool()
        if variant.prompts is not None:
            wanted &= place < variant.prompts
        part = {name: values[wanted] for name, values in seen.items()}
        parts.append(part | {"prompt": part["prompt"] // len(TASKS) if len(variant.tasks) == 1 else part["prompt"]})
    count = len(torch.cat([part["prompt"] for part in parts]).unique())
    prompts = task_prompts(variant.tasks, count)
    rule = replace(score_rule(fit_rule(model, prompts, parts, variant.recipe), parts), **dict(variant.bars))
    path.write_text(json.dumps(rule.to_dict()) + "\n", encoding="utf8")
    return path


def row(name: str, loss: float | None, task: str, samples: list[Sample], base: list[Sample]) -> dict[str, Any]:
    found, theirs = summarise(samples), summarise(base)
    low, high = found["both_interval"]
    return {
        "fitted on": name,
        "task": task,
        "held-out loss": loss,
        "n": found["n"],
        "right %": round(100 * found["right"], 1),
        "both %": round(100 * found["both"], 1),
        "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "to threshold": None if samples is base else difference(compare(samples, base)),
        "forwards": round(found["forwards"], 2),
        "fewer forwards": round(theirs["forwards"] / found["forwards"], 2),
    }


def loss_of(form: str) -> float | None:
    """The logistic loss of a run's rule on prompts that were held out while it was fitted."""
    rule = getattr(starr.strategy(form), "rule", None)
    return None if rule is None else json.loads(Path(rule).read_text(encoding="utf8"))["scores"]["reliability"]["loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Rules fitted on parts of the visits, on every task.")
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--prompts", type=int, default=1000, help="of all tasks together")
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--work", type=Path, default=Path("runs/calibration"), help="folder for visits and rules")
    parser.add_argument("--foreign", type=Path, help="the --work of another model, whose rules for all tasks are tried")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    model = starr.load(options.model, dtype=options.dtype)
    work = options.work / model.name
    plan = CalibrationPlan(batch_size=16)
    prompts = task_prompts(TASKS, options.prompts)
    work.mkdir(parents=True, exist_ok=True)
    claim(work, model, prompts, plan)
    rounds = visit_rounds(model, prompts, plan, work)
    runs = {BASE: BASE}
    runs |= {v.name: f"calibrated:rule={rule_file(model, v, rounds, work)}" for v in variants()}
    if options.foreign:
        runs[f"all tasks, on {options.foreign.name}"] = f"calibrated:rule={options.foreign / ALL.file},foreign=true"
    command = f"python -m benchmarks.calibration --model {options.model} --limit {options.limit}"
    report(model, runs, options.limit, command, options.out)


def report(model: Any, runs: dict[str, str], limit: int, command: str, out: Path) -> None:
    """Decode every run over every task, and write the page after each."""
    name = "calibration" if model.name == "bundled" else f"calibration-{model.name}"
    stored = Stored(name, f"Rules fitted on parts of the visits ({model.name}, n = {limit})", f"{name}.md", NOTES)
    weights = settings_for(model, load_task(TASKS[0])).weights
    where = context(command, f"{model.name} (weights {weights}, bfloat16)", ", ".join(TASKS))
    rows = {(found["fitted on"], found["task"]): found for found in stored.known(out, where)}
    for task in map(load_task, TASKS):
        settings, base = settings_for(model, task), list[Sample]()
        for fitted_on, form in runs.items():
            if base and rows.get((fitted_on, task.name), {"n": 0})["n"] >= limit:
                continue
            samples = list(decode_chunk(model, task, settings, Run(form), choose(task, limit), ROWS[task.name]))
            base = base or samples
            rows[fitted_on, task.name] = row(fitted_on, loss_of(form), task.name, samples, base)
            print(json.dumps(rows[fitted_on, task.name]), flush=True)
            stored.write(out, where, list(rows.values()))


if __name__ == "__main__":
    main()
