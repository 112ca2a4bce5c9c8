"""Makes every page of docs/results: `python -m benchmarks.results --models bundled bundled-dream --out docs/results`.

It prints how long each step will take, then decodes with one process per core, page by page in the order of
``benchmarks.plan``. Samples are kept in the folder ``--samples``, so that the same command continues after Ctrl-C, and
pages share them. After each step its page, ``about.md`` and the list of results are written from the samples;
`python docs/readme_table.py` then writes README's tables. `--minutes M` starts no step that would end later; `--plan`
only prints the estimate.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch when it is imported: one thread a process

from benchmarks.estimate import seconds_of, seconds_of_all, table_of
from benchmarks.plan import ROWS, TASKS, Step, chosen
from benchmarks.pool import Pool, Source, loaded, pool, tasked
from docs import about_results
from starr.evals.run.bench import Bench
from starr.evals.run.evaluate import left, open_store
from starr.evals.run.progress import spell
from starr.evals.run.runs import Run, settings_for
from starr.research.limit import LIMIT
from starr.research.reproduce import RESULTS, RUNS, context
from starr.research.reproduce.over import table1_over
from starr.research.reproduce.result import Result, write_index, write_result


@dataclass(frozen=True)
class Benches:
    """One bench for each model and task, opened when it is first asked for."""

    samples: Path
    dtype: str
    known: dict[tuple[str, str], Bench] = field(default_factory=dict)

    def of(self, step: Step) -> Bench:
        """A step's bench."""
        key = step.model, step.task
        if key not in self.known:
            model, task = loaded(step.model, self.dtype), tasked(step.task)
            settings = settings_for(model, task)
            store = open_store(self.samples / settings.folder, settings, [], resume=True)
            self.known[key] = Bench(model, task, settings, store, rows=ROWS[step.task])
        return replace(self.known[key], limit=step.limit, fewer=step.fewer)


def runs_of(step: Step, bench: Bench) -> list[Run]:
    """What a step decodes, the limit among it where its page compares with it."""
    if step.page not in RUNS:
        return []
    return list(dict.fromkeys([*RUNS[step.page](bench), *([] if step.page == "parallel" else [Run(LIMIT)])]))


def fill(step: Step, benches: Benches, workers: Pool) -> None:
    """Decode what a step lacks."""
    bench = benches.of(step)
    decoder = workers.decoder(Source(step.model, benches.dtype, step.task))
    for work in bench.works(runs_of(step, bench), range(len(bench.items))):
        if left(work, bench.store):
            decoder.decode(work, bench.store)


def made(step: Step, done: Sequence[Step], benches: Benches) -> tuple[Result, str, str]:
    """A step's page from its samples, with its model and task; Table 1 holds every model and task that is done."""
    if step.page != "table1":
        bench = benches.of(step)
        return replace(RESULTS[step.page](bench), name=step.stem), bench.checkpoint, step.task
    last = {(s.model, s.task): s for s in done if s.page == "table1"}
    order = sorted(last.values(), key=lambda s: (list(dict.fromkeys(d.model for d in done)).index(s.model),
                                                 TASKS.index(s.task)))  # fmt: skip
    some = [benches.of(s) for s in order]
    models = ", ".join(dict.fromkeys(bench.checkpoint for bench in some))
    return table1_over(some), models, ", ".join(dict.fromkeys(s.task for s in order))


def command_of(step: Step, dtype: str, models: Sequence[str]) -> str:
    """The command that makes a page again."""
    if step.page == "table1":
        return f"python -m benchmarks.results --only table1 --models {' '.join(models)}"
    named = "" if step.model == "bundled" else f" --model {step.model}"
    return f"starr reproduce {step.page} --task {step.task}{named} --dtype {dtype} --limit {step.limit}"


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Every page of docs/results, resumable.")
    parser.add_argument("--models", nargs="+", default=["bundled", "bundled-dream"], help="the first has all pages")
    parser.add_argument("--tasks", nargs="+", default=TASKS, choices=TASKS)
    parser.add_argument("--only", nargs="+", default=None, choices=list(RESULTS), metavar="PAGE")
    parser.add_argument("--limit", type=int, default=None, help="at most this many items a point")
    parser.add_argument("--minutes", type=float, default=None, help="start no step that would end later")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes, one core each")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--samples", type=Path, default=Path("runs/results"), help="folder of the samples")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder of the pages")
    parser.add_argument("--plan", action="store_true", help="only print the estimate")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(given)
    steps = chosen(options.models, options.tasks, options.only, options.limit)
    benches = Benches(options.samples, options.dtype)
    known = [(step, benches.of(step), runs_of(step, benches.of(step))) for step in steps]
    print(table_of(steps, seconds_of_all(known), options.workers), flush=True)
    if options.plan:
        return
    done: list[Step] = []
    start = perf_counter()
    with pool(options.workers) as workers:
        for step in steps:
            bench = benches.of(step)
            ahead = seconds_of(runs_of(step, bench), bench) / options.workers
            if options.minutes is not None and perf_counter() - start + ahead > 60 * options.minutes:
                print(f"left out: {step.stem} ({step.model}, n = {step.limit}), about {spell(ahead)}", flush=True)
                continue
            print(f"{step.stem}: {step.model}, {step.task}, n = {step.limit}, about {spell(ahead)}", flush=True)
            fill(step, benches, workers)
            done.append(step)
            result, model, task = made(step, done, benches)
            where = context(command_of(step, options.dtype, options.models), model, task)
            write_result(result, where, options.out)
            about_results.main(options.out)
            write_index(options.out)
            print(f"wrote {options.out / step.stem}.md after {spell(perf_counter() - start)}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
