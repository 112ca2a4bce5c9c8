"""What committing several tokens at once breaks, by kind of item: one, two, four and eight tokens per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starr.evals.run.bench import Bench, Measured, difference
from starr.evals.run.results import compare
from starr.evals.run.runs import Run
from starr.evals.run.store import Sample
from starr.evals.stats import wilson
from starr.research.reproduce.figures import BOTH, colours
from starr.research.reproduce.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOGETHER = (1, 2, 4, 8)  # tokens per step


def parallel_runs(bench: Bench) -> list[Run]:
    """The most confident tokens, a fixed number per step."""
    canvas = bench.settings.max_tokens
    steps = [max(1, canvas // count) for count in TOGETHER[1:]]
    return [bench.run("confidence"), *(bench.run(f"confidence:steps={count}") for count in steps)]


def parallel(bench: Bench) -> Result:
    """Both for each kind of item over tokens per step, and what is lost from one token to four."""
    measured = bench.measure(parallel_runs(bench))
    kinds = ["all", *dict.fromkeys(sample.kind for sample in measured[0].samples if sample.kind)]
    rows = [line(kind, measured) for kind in kinds]
    return Result(
        "parallel",
        f"Tokens per step, by kind of item ({bench.task.name}, n = {measured[0].figures['n']})",
        rows,
        lambda figure: draw(figure, measured, kinds),
        "Right and well formed when the most confident tokens are committed, a fixed number per step. Where the tokens "
        "of an answer depend on one another, no confidence tells which of them may be written together.",
        notes=["The loss is paired, with a Bonett-Price interval; the other intervals are Wilson's."],
        size=(9.0, 5.5),
    )


def of_kind(samples: Sequence[Sample], kind: str) -> list[Sample]:
    """Samples of one kind, or all."""
    return [sample for sample in samples if kind in ("all", sample.kind)]


def line(kind: str, measured: Sequence[Measured]) -> dict[str, Any]:
    """One kind's line."""
    groups = [of_kind(m.samples, kind) for m in measured]
    shares = {
        f"{count} per step, both %": round(100 * sum(s.both for s in group) / len(group), 1)
        for count, group in zip(TOGETHER, groups, strict=True)
    }
    low, high = wilson(sum(s.both for s in groups[0]), len(groups[0]))
    interval = {"95 % interval of 1 per step": f"{100 * low:.1f} to {100 * high:.1f}"}
    lost = difference(compare(groups[TOGETHER.index(4)], groups[0]))
    return {"kind": kind, "n": len(groups[0]), **shares, **interval, "from 1 to 4 per step": lost}


def draw(figure: Figure, measured: Sequence[Measured], kinds: Sequence[str]) -> None:
    """One line for each kind over tokens per step, all of them in black."""
    axes = figure.add_subplot()
    for colour, mark, kind in zip(["black", *colours(len(kinds))], "osv^DpX*<>Phd" * 2, kinds, strict=False):
        groups = [of_kind(m.samples, kind) for m in measured]
        shares = [100 * sum(s.both for s in group) / len(group) for group in groups]
        wide = 2.5 if kind == "all" else 1.2
        axes.plot(TOGETHER, shares, marker=mark, color=colour, linewidth=wide, label=kind, clip_on=False)
    axes.set_xscale("log", base=2)
    axes.set_xticks(TOGETHER, [str(count) for count in TOGETHER])
    axes.set_xlabel("tokens committed per step")
    axes.set_ylabel(BOTH.partition(",")[0] + ")")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
