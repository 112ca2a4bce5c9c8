"""From samples to ``results.json``: figures with intervals for every run, and every pair on the same samples."""

from __future__ import annotations

import json
import platform
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from starr.evals.grading.sandbox import isolation
from starr.evals.run.store import Sample, Store
from starr.evals.stats import bootstrap, paired, percentile, wilson
from starr.model.files.output import write_text
from starr.model.threads import count_cores

CODE_TASKS = ("humaneval", "mbpp", "list-functions")
WITH_END = "with end: tokens per forward when the end-of-text and the canvas after it are counted, too"
"""The column's meaning, for the notes of every table that has it."""
ANSWER_ONLY = "Only the answer is graded, not how it is written: both is right"
"""What is said of tasks without ``formed``."""


def summarise(samples: Sequence[Sample]) -> dict[str, Any]:
    """The figures of one run. Clock times are under ``time``; everything else is the same on every machine."""
    n = len(samples)
    forwards, tokens = sum(s.forwards for s in samples), sum(s.tokens for s in samples)
    positions, canvas = sum(s.positions for s in samples), sum(s.canvas_tokens for s in samples)
    seconds = sum(s.elapsed for s in samples)
    waits = [s.seconds for s in samples]
    return {
        "run": samples[0].run,
        "strategy": samples[0].strategy,
        "cache": samples[0].cache,
        "n": n,
        **shares(samples),
        "scores": {name: sum(s.scores[name] for s in samples) / n for name in samples[0].scores},
        "forwards": forwards / n,
        "forwards_interval": bootstrap([s.forwards for s in samples]),
        "positions": positions / n,
        "positions_interval": bootstrap([s.positions for s in samples]),
        "tokens": tokens / n,
        "tokens_per_forward": tokens / forwards,
        "tokens_per_forward_interval": bootstrap([s.tokens for s in samples], [s.forwards for s in samples]),
        "tokens_per_forward_with_end": canvas / forwards,
        "positions_per_token": positions / max(tokens, 1),
        "revocations": sum(s.revocations for s in samples) / n,
        "kinds": kinds(samples),
        "time": {
            "seconds": seconds,
            "tokens_per_second": tokens / max(seconds, 1e-9),
            "latency_p50": percentile(waits, 0.5),
            "latency_p95": percentile(waits, 0.95),
        },
    }


def shares(samples: Sequence[Sample]) -> dict[str, Any]:
    """Right, formed (None where only the answer is graded) and both, which comparisons go by."""
    n = len(samples)
    counts = {"right": sum(s.right for s in samples), "both": sum(s.both for s in samples)}
    found: dict[str, Any] = {"formed": None, "formed_interval": None}
    if samples[0].formed is not None:
        counts["formed"] = sum(bool(s.formed) for s in samples)
    for name, count in counts.items():
        found |= {name: count / n, f"{name}_interval": wilson(count, n)}
    return found


def kinds(samples: Sequence[Sample]) -> dict[str, dict[str, Any]]:
    """The same shares, and mean forwards, for each kind of item; empty where a task has no kinds."""
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.kind].append(sample)
    return {
        kind: {"n": len(group), **shares(group), "forwards": sum(s.forwards for s in group) / len(group)}
        for kind, group in groups.items()
        if kind
    }


def compare(first: Sequence[Sample], second: Sequence[Sample], grade: str = "both") -> dict[str, Any]:
    """The paired difference of two runs (first minus second, in [-1, 1]) in a grade, over samples that both have."""
    there = {s.index: getattr(s, grade) for s in second}
    both = [s for s in first if s.index in there]
    result = paired([getattr(s, grade) for s in both], [there[s.index] for s in both])
    return {
        "first": first[0].run,
        "second": second[0].run,
        "n": result.n,
        "only_first": result.only_first,
        "only_second": result.only_second,
        "difference": result.difference,
        "interval": result.interval,
        "mcnemar_p": result.p,
    }


def results_of(store: Store, settings: Mapping[str, Any], runs: Sequence[str]) -> dict[str, Any]:
    """The whole of ``results.json``."""
    by_run = {name: found for name in runs if (found := store.of(name))}
    body: dict[str, Any] = {"version": 1, **settings}
    body["runs"] = [summarise(samples) for samples in by_run.values()]
    body["pairs"] = [compare(by_run[a], by_run[b]) for a, b in combinations(by_run, 2)]
    body["sandbox"] = str(isolation()) if settings["task"] in CODE_TASKS else None
    body["machine"] = machine()
    body["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    return body


def has_form(results: Mapping[str, Any]) -> bool:
    """Whether a run was graded for its form, too."""
    return any(run["formed"] is not None for run in results["runs"])


def write_results(store: Store, results: Mapping[str, Any]) -> Path:
    """Write ``results.json`` into the run folder."""
    path = store.folder / "results.json"
    write_text(path, json.dumps(results, indent=1) + "\n")
    return path


def machine() -> dict[str, Any]:
    """Hardware and versions, so that seconds mean something."""
    import torch

    import starr

    return {
        "processor": processor(),
        "cores": count_cores(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.platform(),
        "versions": {"starr": starr.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def place_of(found: Mapping[str, Any]) -> str:
    """A machine in a few words: its GPU, or its processor with cores and threads."""
    counts = ", ".join(f"{found[name]} {name if found[name] != 1 else name[:-1]}" for name in ("cores", "threads"))
    return str(found["gpu"] or f"{found['processor']}, {counts}")


def processor() -> str:
    """The CPU's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
