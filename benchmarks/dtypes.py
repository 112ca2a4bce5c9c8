"""The two dtypes of a CPU over the same items: `python -m benchmarks.dtypes --limit 100 --out docs/results`.

Grades and forwards in float32 and bfloat16, the paired difference of the grades, how many texts are the same, and the
processor time of one thread, which a busy machine changes little. Batches of both dtypes take turns.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time
from typing import Any

import starr
from starr.evals.run.bench import difference
from starr.evals.run.results import compare, summarise
from starr.evals.run.runner import decode_chunk
from starr.evals.run.runs import Run, choose, fingerprint, settings_for
from starr.evals.run.store import Sample
from starr.evals.tasks import load_task
from starr.model.load import Model
from starr.research.reproduce import context
from starr.research.reproduce.result import table, write_index

DTYPES = ("float32", "bfloat16")
TASKS = ("word-problems", "lines", "grids")
NOTE = (
    "to float32: points of right and formed, paired, with the 95 % interval. same: texts equal to those of float32. "
    "cpu s: processor time of one thread for a sample."
)


def measured(models: dict[str, Model], task_name: str, given: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each dtype."""
    task = load_task(task_name)
    chosen = choose(task, given.limit)
    samples: dict[str, list[Sample]] = {name: [] for name in DTYPES}
    taken = dict.fromkeys(DTYPES, 0.0)
    for start in range(0, len(chosen), given.rows):
        for name, model in models.items():
            began = process_time()
            part = chosen[start : start + given.rows]
            samples[name] += decode_chunk(model, task, settings_for(model, task), Run(given.strategy), part, given.rows)
            taken[name] += process_time() - began
    for found in samples.values():
        found.sort(key=lambda sample: sample.index)
    base = samples["float32"]
    return [row(task_name, name, samples[name], base, taken[name]) for name in DTYPES]


def row(task: str, name: str, samples: list[Sample], base: list[Sample], taken: float) -> dict[str, Any]:
    """The figures of one dtype next to those of float32."""
    found = summarise(samples)
    same = sum(one.text == other.text for one, other in zip(samples, base, strict=True))
    return {
        "task": task,
        "dtype": name,
        "n": found["n"],
        "right %": round(100 * found["right"], 1),
        "both %": round(100 * found["both"], 1),
        "to float32": None if name == "float32" else difference(compare(samples, base)),
        "same": None if name == "float32" else same,
        "forwards": round(found["forwards"], 2),
        "cpu s": round(taken / len(samples), 3),
    }


def write(rows: list[dict[str, Any]], given: argparse.Namespace, model: Model) -> None:
    """Both files, as ``starr reproduce`` writes its own."""
    command = f"python -m benchmarks.dtypes --limit {given.limit} --rows {given.rows} --strategy {given.strategy}"
    where = context(command, f"{model.name} (weights {fingerprint(model)})", ", ".join(given.tasks))
    title = f"float32 and bfloat16 on a CPU, paired (n = {given.limit} of each task, {given.strategy})"
    body = {
        "name": "dtypes", "title": title, "rows": rows, "notes": [NOTE], "command": where.command,
        "model": where.model, "task": where.task, "machine": where.machine, "date": where.date,
    }  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "dtypes.json").write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    page = "\n\n".join([f"# {title}", table(rows), f"- {NOTE}", where.line()])
    (given.out / "dtypes.md").write_text(page + "\n", encoding="utf8")
    write_index(given.out)


def main() -> None:
    parser = argparse.ArgumentParser(description="float32 and bfloat16 over the same items.")
    parser.add_argument("--model", default=None, help="a folder or a name; the bundled model if left out")
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--strategy", default="starr")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder for dtypes.json and dtypes.md")
    given = parser.parse_args()
    models = {name: starr.load(given.model, dtype=name, threads=1) for name in DTYPES}
    rows: list[dict[str, Any]] = []
    for task in given.tasks:
        for found in measured(models, task, given):
            print(json.dumps(found), flush=True)
            rows.append(found)
    write(rows, given, models["float32"])


if __name__ == "__main__":
    main()
