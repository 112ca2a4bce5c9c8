"""A toy benchmark and jobs over it with a tiny random model; also a program that a test can kill."""

import sys
import time
from pathlib import Path

from starr.evals.run.bench import Bench
from starr.evals.run.evaluate import Evaluation, run_evaluation
from starr.evals.run.runner import Workload
from starr.evals.run.runs import choose, make_runs, settings_for
from starr.evals.run.store import Store
from starr.evals.tasks import Grade, Item, Task
from tests.tiny import tiny_model


def toy_task(count=12, pause=0.0):
    """Questions of different lengths; an answer is right when its characters sum to an even number."""

    def grade(item, text):
        time.sleep(pause)
        return Grade(text[:3], {"even": sum(map(ord, text)) % 2 == 0, "short": len(text) < 9})

    items = [Item(f"toy/{i}", "what? " * (1 + i % 4), "", "even", "") for i in range(count)]
    return Task("toy", items, grade, "even", 10)


def toy_job(out, *, resume=False, shard=None, limit=None, strategies=("threshold:tau=0.5", "starr"), pause=0.0, **work):
    model, task = tiny_model(length=64), toy_task(pause=pause)
    settings = settings_for(model, task, form="base")
    runs = make_runs(strategies)
    return model, Evaluation(
        task, settings, Workload(choose(task, limit, shard), runs, 3, **work), Path(out), resume, True
    )


def toy_bench(folder, count=6, max_tokens=10):
    model, task = tiny_model(length=128), toy_task(count)
    settings = settings_for(model, task, form="base", max_tokens=max_tokens)
    store = Store(Path(folder) / "samples")
    store.open(settings.to_dict() | {"runs": []}, resume=True)
    return Bench(model, task, settings, store, None, 3, block_length=5, quiet=True)


if __name__ == "__main__":
    run_evaluation(*toy_job(sys.argv[1], pause=0.15))
