"""Samples per second with one process on all cores, and with 1 and 2 of Ray's workers; what Ray costs; its ceiling.

    python -m benchmarks.scale [--limit 64] [--units 2000] [-o docs/results/scale.json]

The three ways decode the same items of word-problems with the bundled model. The ceiling is what one driver can take
from workers that do no work at all: their samples are sent, received, stored and counted like real ones. Storing and
counting the same samples without Ray tells what of that is Ray's. docs/scale.md gets its table from the file by
`python -m docs.scale_table`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import starr
from starr.cluster.fleet import Fleet, make_starter
from starr.cluster.jobs import Remote, start_remote
from starr.cluster.start import Size, connect
from starr.cluster.worker import EvalWorker, ModelSource
from starr.evals.run.evaluate import Evaluation, carry_out, open_store, run_evaluation
from starr.evals.run.results import machine
from starr.evals.run.runner import Workload
from starr.evals.run.runs import choose, make_runs, settings_for
from starr.evals.run.store import Sample
from starr.evals.tasks import load_task

STRATEGY, ROWS = "starr", 8


class Idle(EvalWorker):
    """Gives back the same sample for every item, at once."""

    def __init__(self, source: ModelSource, sample: Sample) -> None:
        self.sample, self.error = sample, None

    def decoder(self, key):
        return lambda places: ((place, replace(self.sample, run=key.name, index=place)) for place in places)


def one_process(folder: Path, work: Workload, task, model, settings) -> tuple[float, Sample]:
    began = time.perf_counter()
    run_evaluation(model, Evaluation(task, settings, work, folder, quiet=True))
    seconds = time.perf_counter() - began
    first = json.loads((folder / "samples.jsonl").read_text().splitlines()[0])
    return len(work.items) / seconds, Sample(**first)


def with_workers(folder: Path, work: Workload, task, workers: int) -> float:
    """Samples per second once the models are loaded."""
    with start_remote(Size(workers=workers), ModelSource(), task, ROWS, {}, quiet=True) as decoder:
        settings = decoder.settings()
        while any(member.state != "idle" for member in decoder.fleet.members):
            list(decoder.fleet.wait())
        began = time.perf_counter()
        carry_out(Evaluation(task, settings, work, folder, quiet=True), decoder)
        return len(work.items) / (time.perf_counter() - began)


def ceiling(folder: Path, units: int, task, settings, sample: Sample, workers: int = 2) -> float:
    """Samples per second that the driver takes from idle workers."""
    with connect(Size(workers=workers)) as (ray, size):
        fleet = Fleet(ray, size, make_starter(ray, size, Idle, ModelSource(), (sample,)), print)
        while any(member.state != "idle" for member in fleet.members):
            list(fleet.wait())
        items = [(place, task.items[place % len(task.items)]) for place in range(units)]
        store = open_store(folder, settings, make_runs([STRATEGY]), resume=False)
        began = time.perf_counter()
        Remote(fleet, ROWS, quiet=True).decode(Workload(items, make_runs([STRATEGY]), ROWS), store)
        seconds = time.perf_counter() - began
        store.close()
        fleet.end()
        return units / seconds


def without_ray(folder: Path, units: int, settings, sample: Sample) -> float:
    """Samples per second that are stored and counted without Ray in between."""
    (run,) = make_runs([STRATEGY])
    store = open_store(folder, settings, [run], resume=False)
    began = time.perf_counter()
    for place in range(units):
        store.add(replace(sample, run=run.name, index=place))
    seconds = time.perf_counter() - began
    store.close()
    return units / seconds


def model_of(pace: float, most: float) -> list[dict[str, float]]:
    """Samples per second by number of workers: their pace times their number, and never more than the driver takes."""
    return [{"workers": count, "samples/s": round(min(count * pace, most), 2)} for count in (1, 2, 10, 100, 1000)]


def main(argv: list[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=64, help="items decoded in each way")
    parser.add_argument("--units", type=int, default=2000, help="samples of the ceiling")
    parser.add_argument("-o", "--out", type=Path, help="a JSON file")
    options = parser.parse_args(argv)
    task, model = load_task("word-problems"), starr.load()
    settings = settings_for(model, task)
    work = Workload(choose(task, options.limit), make_runs([STRATEGY]), ROWS)
    with tempfile.TemporaryDirectory() as folder:
        alone, sample = one_process(Path(folder) / "alone", work, task, model, settings)
        crews = {workers: with_workers(Path(folder) / str(workers), work, task, workers) for workers in (1, 2)}
        most = ceiling(Path(folder) / "idle", options.units, task, settings, sample)
        stored = without_ray(Path(folder) / "stored", options.units, settings, sample)
    about = machine()
    found = {
        "command": f"python -m benchmarks.scale --limit {options.limit} --units {options.units}",
        "machine": f"{about['processor']}, {about['cores']} cores, torch {about['versions']['torch']}",
        "date": date.today().isoformat(),
        "one_process_all_cores": round(alone, 2),
        "one_worker": round(crews[1], 2),
        "two_workers": round(crews[2], 2),
        "driver_most": round(most, 1),
        "driver_ms_per_sample": round(1000 / most, 3),
        "ray_ms_per_sample": round(1000 / most - 1000 / stored, 3),
        "workers_that_one_driver_feeds": int(most / crews[1]),
        "pace_at_which_1000_workers_fill_it": round(most / 1000, 3),
        "model": model_of(crews[1], most),
    }
    text = json.dumps(found, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    return found


if __name__ == "__main__":
    main()
