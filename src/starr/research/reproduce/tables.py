"""The paper's tables: methods, responsiveness, caches with in-place prompting, and blocks with the dual cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from starr.evals.run.bench import Bench, against, difference
from starr.evals.run.results import compare
from starr.evals.run.runs import Run
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
    return compared(bench, "table1", "Table 1: remasking strategies", table1_runs(bench), paper_table1())


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
    return compared(bench, "table2", "Table 2: responsiveness optimization", table2_runs(bench), small(paper.TABLE2))


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
    made = compared(bench, "table3", "Table 3: STaRR with dKV-Cache and ICE", runs, small(paper.TABLE3))
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
    return compared(bench, "table5", "Table 5: Block STaRR and Dual Cache", table5_runs(bench), small(paper.TABLE5))


def starr_form(bench: Bench, *options: str) -> str:
    """STaRR as the paper sets it for the task: W_t 5 and W_n 2 for MATH500, the defaults elsewhere."""
    parts = [*(["preset=math500"] if bench.task.name == "math500" else []), *options]
    return "starr" + (":" + ",".join(parts) if parts else "")


def small(rows: Sequence[tuple[str, float, float]]) -> list[Row]:
    """The paper's rows of a table with speed-up and accuracy."""
    return [{"method (paper)": name, "speed-up": up, "accuracy": right} for name, up, right in rows]


def compared(bench: Bench, name: str, title: str, runs: Sequence[Run], theirs: Sequence[Row]) -> Result:
    """A table of runs against its first one, with the paper's below."""
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
        [f"Doubts about the paper's numbers: {paper.DOUBTS[name]}"],
        size=(10.0, 1.6 + 0.75 * len(runs)),
    )
