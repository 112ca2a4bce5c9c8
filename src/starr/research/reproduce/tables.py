"""The paper's tables: methods, responsiveness, caches with in-place prompting, and blocks with the dual cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starr.evals.run.bench import Bench, Measured, difference
from starr.evals.run.results import compare
from starr.evals.run.runs import Run
from starr.evals.run.store import Sample
from starr.research.limit import oracle_samples
from starr.research.reproduce import paper
from starr.research.reproduce.figures import accuracy_and_speed
from starr.research.reproduce.result import Result, Row

INTERVALS = (
    "95 % intervals: Wilson's of shares (bars), Bonett and Price's of paired differences, the bootstrap's over items "
    "of forwards and positions."
)
ICE_CACHES = ("none", "dkv", "dkv:refresh=3")  # refreshing every 8 steps, the default, comes after ICE's last one
NEVER_SURE = 2  # a mean confidence that no answer reaches: the run goes on until all thinking is written
ICE_NOTE = (
    "ICE ends when the answer is sure, and leaves out what it had not decided of its thinking, mostly wordings. Such a "
    "text is not well formed by design: compare right answers. With threshold=2 it never ends early: there its whole "
    "text is compared. It takes fewer steps than dKV-Cache waits before it refreshes, while every step commits many "
    "tokens; so a shorter interval is shown as well. An answer that is sure by old K/V is looked at again: only a "
    "forward over everything ends a run early."
)


def table1_runs(bench: Bench) -> list[Run]:
    """One token per step, the fixed threshold, dilated positions and STaRR; the fitted rule where one ships."""
    forms = ("confidence", "threshold", "dus", starr_form(bench), *(("calibrated",) if bench.rule else ()))
    return [bench.run(text) for text in forms]


def table1(bench: Bench) -> Result:
    """Confidence (one token per forward), Fast-dLLM's threshold, DUS, STaRR, and our fitted rule."""
    return compare_runs(bench, "table1", "Table 1: remasking strategies", table1_runs(bench), paper_table1())


def paper_table1() -> list[Row]:
    """The paper's own lines."""
    return [
        {
            "data set (paper)": data,
            "model": model,
            "method": method,
            "accuracy": right,
            "tokens/s": speed,
            "speed-up": up,
        }
        for (data, model), columns in paper.TABLE1.items()
        for method, right, speed, up in zip(paper.METHODS, *columns, strict=True)
    ]


def table2_runs(bench: Bench) -> list[Run]:
    """One token per step, and STaRR without and with responsiveness."""
    return [bench.run(text) for text in ("confidence", starr_form(bench, "responsive=false"), starr_form(bench))]


def table2(bench: Bench) -> Result:
    """STaRR without and with Responsiveness Optimization."""
    return compare_runs(
        bench, "table2", "Table 2: responsiveness optimization", table2_runs(bench), paper_rows(paper.TABLE2)
    )


def table3_runs(bench: Bench) -> list[Run]:
    """One token per step, and STaRR with and without dKV-Cache and ICE: as it is, and with all its thinking written.

    On word problems ICE has one thinking section: three of them hold no answer of seven steps on a canvas of 128.
    """
    form, single = starr_form(bench), bench.task.name == "word-problems"
    early = "ice-pp:steps=1" if single else "ice-pp"
    whole = f"{early}{',' if single else ':'}threshold={NEVER_SURE}"
    pairs = [bench.run(form, cache, ice=ice) for ice in (None, early, whole) for cache in ICE_CACHES]
    return [bench.run("confidence"), *pairs]


def table3(bench: Bench) -> Result:
    """STaRR with dKV-Cache and with in-place prompting (ICE), compared with itself without ICE."""
    runs = table3_runs(bench)
    made = compare_runs(bench, "table3", "Table 3: STaRR with dKV-Cache and ICE", runs, paper_rows(paper.TABLE3))
    _, *found = (one.samples for one in bench.measure(runs))
    without, with_ice = found[: len(ICE_CACHES)], found[len(ICE_CACHES) :]
    told = []
    for ours, theirs in zip(with_ice, 2 * without, strict=True):
        right, both = (difference(compare(ours, theirs, grade)) for grade in ("right", "both"))
        told.append(f"{ours[0].run} against {theirs[0].run}: right {right}, both {both}")
    return replace(made, notes=[*made.notes, ICE_NOTE, f"In points, paired: {'; '.join(told)}."])


def table5_runs(bench: Bench) -> list[Run]:
    """One token per step, and STaRR whole, in blocks, and in blocks with the dual cache."""
    form, block = starr_form(bench), bench.block_length
    return [bench.run("confidence"), bench.run(form), bench.run(form, block_length=block),
            bench.run(form, "dual", block)]  # fmt: skip


def table5(bench: Bench) -> Result:
    """STaRR over the whole canvas, in blocks, and in blocks with the dual cache."""
    return compare_runs(
        bench, "table5", "Table 5: Block STaRR and Dual Cache", table5_runs(bench), paper_rows(paper.TABLE5)
    )


def starr_form(bench: Bench, *options: str) -> str:
    """STaRR as the paper sets it for the task: W_t 5 and W_n 2 for MATH500, the defaults elsewhere."""
    parts = [*(["preset=math500"] if bench.task.name == "math500" else []), *options]
    return "starr" + (":" + ",".join(parts) if parts else "")


def paper_rows(rows: Sequence[tuple[str, float, float]]) -> list[Row]:
    """The paper's rows of a table with speed-up and accuracy."""
    return [{"method (paper)": name, "speed-up": up, "accuracy": right} for name, up, right in rows]


def compare_runs(
    bench: Bench, name: str, title: str, runs: Sequence[Run], theirs: Sequence[Row] = (), notes: Sequence[str] = ()
) -> Result:
    """A table of runs against its first one, with the paper's below where it has one."""
    measured = bench.measure(runs)
    rows = against(bench, measured[0], measured)
    n, length = measured[0].figures["n"], bench.settings.max_tokens
    return Result(
        name,
        f"{title} ({bench.task.name}, n = {n})",
        rows,
        lambda figure: accuracy_and_speed(figure, measured, rows),
        f"Both and speed-up against {runs[0].name}; canvas of {length}, {bench.rows} rows at once. {INTERVALS}",
        theirs,
        notes or [f"Doubts about the paper's numbers: {paper.DOUBTS[name]}"],
        size=(10.0, 1.6 + 0.75 * len(runs)),
    )


def against(bench: Bench, base: Measured, measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """Table rows: grades, forwards, positions and speed of each run, and its paired difference to the base in both.

    Speed-up three ways, because they differ: in forwards, in positions recomputed, and in seconds of this machine.
    """
    limit = oracle_samples(bench)
    return [row(base, found, limit) for found in measured]


def row(base: Measured, found: Measured, limit: Sequence[Sample]) -> dict[str, Any]:
    """One run's line of a table, compared with the baseline and with the limit's samples over the items they share."""
    ours, theirs = found.figures, base.figures
    low, high = ours["both_interval"]
    pair = None if found is base else compare(found.samples, base.samples)
    return {
        "run": found.run.name,
        "n": ours["n"],
        "right %": round(100 * ours["right"], 1),
        "formed %": None if ours["formed"] is None else round(100 * ours["formed"], 1),
        "both %": round(100 * ours["both"], 1),
        "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}",
        "difference": None if pair is None else difference(pair),
        "McNemar p": None if pair is None else round(pair["mcnemar_p"], 3),
        "forwards": round(ours["forwards"], 1),
        "forwards interval": "{:.1f} to {:.1f}".format(*ours["forwards_interval"]),
        "forwards / limit": round(ratio(found.samples, limit, "forwards"), 2),
        "positions": round(ours["positions"]),
        "positions interval": "{:.0f} to {:.0f}".format(*ours["positions_interval"]),
        "tokens/forward": round(ours["tokens_per_forward"], 2),
        "tokens/s": round(ours["time"]["tokens_per_second"], 1),
        "speed-up (forwards)": round(ratio(base.samples, found.samples, "forwards"), 2),
        "speed-up (positions)": round(ratio(base.samples, found.samples, "positions"), 2),
        "speed-up (seconds)": round(seconds_each(theirs) / max(seconds_each(ours), 1e-9), 2),
    }


def ratio(first: Sequence[Sample], second: Sequence[Sample], figure: str) -> float:
    """How many times the second's figure the first's is, over the items that both have."""
    there = {sample.index: getattr(sample, figure) for sample in second}
    shared = [sample for sample in first if sample.index in there]
    return float(sum(getattr(s, figure) for s in shared) / sum(there[s.index] for s in shared))


def seconds_each(figures: dict[str, Any]) -> float:
    """The engine's seconds for one sample."""
    return float(figures["time"]["seconds"] / figures["n"])
