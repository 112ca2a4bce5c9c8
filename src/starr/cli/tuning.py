"""``starr tune``: the fastest options of a strategy that keep the accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.benchmark import Shared
from starr.cli.files import check_out
from starr.cli.flags import Json, flag_of
from starr.cli.report import dump, note, table, three
from starr.cli.verb import verb
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.evals.run.bench import Bench
    from starr.evals.run.runs import Run
    from starr.evals.run.store import Sample
    from starr.fit.tune import Bound, Tuned

HEAD = ("candidate", "n", "right %", "formed %", "both %", "difference", "interval", "forwards", "front")


@dataclass(frozen=True, kw_only=True)
class TuneOptions(Shared):
    """The flags of ``starr tune``."""

    task: Annotated[str, typer.Argument(metavar="TASK", help="The benchmark to tune on.")]
    strategy: Annotated[str, typer.Option(help="What to tune, as a text form.")] = "starr"
    grid: Annotated[list[str], typer.Option(help="option=a/b/c; repeatable.")] = ()  # type: ignore[assignment]
    random: Annotated[
        int | None, typer.Option(help="Try only this many of the grid's combinations, drawn at random.")
    ] = None
    baseline: Annotated[str, typer.Option(help="The strategy that accuracy is compared with.")] = "confidence"
    loss: Annotated[float, typer.Option(help="Largest loss of accuracy allowed, in points.")] = 2.0
    confidence: Annotated[float, typer.Option(help="Confidence with which the bound must hold.")] = 0.9
    calibration: Annotated[int, typer.Option(help="Items to tune on; as many again are held out.")] = 128
    cache: Annotated[str, typer.Option(help="Cache that all candidates use.")] = "none"
    block_length: Annotated[int | None, flag_of("block_length")] = None
    verify: Annotated[float, flag_of("verify")] = 0.0
    out: Annotated[Path, typer.Option("-o", "--out", help="Preset file to write.")] = Path("tuned.json")
    work: Annotated[Path, typer.Option(help="Folder for the samples.")] = Path("runs/tune")
    json: Json = False


def add(app: typer.Typer) -> None:
    """Add ``starr tune``."""
    verb(app, "tune", TuneOptions, run)


def run(options: TuneOptions) -> None:
    """Find the fastest options that keep the accuracy.

    Races the candidates of the grid on a calibration split; prints the accuracy-forwards front, the chosen text form
    and its score on held-out items, and writes a preset file for --strategy @FILE. Where no candidate keeps the
    accuracy, the baseline is chosen.
    """
    from starr.evals.run.bench import Bench
    from starr.evals.run.evaluate import open_store
    from starr.evals.run.runs import make_runs
    from starr.fit.tune import Bound, candidates, parse_grid, tune, write_preset

    check_out(options.out, "--out")
    bound = Bound(options.loss, options.confidence)
    bound.check(options.calibration)
    forms = candidates(options.strategy, parse_grid(options.grid), options.random, options.decoding.seed)
    runs = make_runs(forms, [options.cache], options.block_length, verify=[options.verify])
    base = make_runs([options.baseline], [options.cache], options.block_length)[0]
    model, task, settings = options.prepare(options.task)
    store = open_store(options.work / options.task, settings, [], resume=True)
    bench = Bench(model, task, settings, store, options.limit, options.batch_size, quiet=options.quiet)
    splits = split(len(bench.items), options.calibration)
    tuned = tune(runs, base, bound, splits, lambda run, places: measure(bench, run, places))
    print(dump(as_dict(tuned)) if options.json else show(tuned))
    if tuned.winner is None:
        note(explain(tuned, bound))
    facts = {"task": options.task, "baseline": base.name, "loss": bound.points, "confidence": bound.confidence}
    write_preset(tuned, options.out, facts)
    note(f"wrote {options.out}: use it as --strategy @{options.out}", options.quiet)


def split(total: int, calibration: int) -> tuple[list[int], list[int]]:
    """Places to tune on (every second item from the first) and places held out (the others)."""
    if calibration < 2 or total < 2 * calibration:
        raise InputError(
            f"--calibration must be at least 2 and at most half of the {total} items, got {calibration}.",
            param="calibration",
        )
    return list(range(0, 2 * calibration, 2)), list(range(1, 2 * calibration, 2))


def measure(bench: Bench, run: Run, places: Sequence[int]) -> list[Sample]:
    """A run's samples at these places of the bench."""
    return list(bench.measure_at([run], places)[0].samples)


def show(tuned: Tuned) -> str:
    """The candidates, fastest first; those on the accuracy-forwards front have a star."""
    fastest_first, best, rows = sorted(tuned.candidates, key=lambda s: s.forwards), -1.0, []
    for found in fastest_first:
        on_front, best = found.both > best, max(best, found.both)
        low, high = found.pair.interval
        rows.append((
            found.run.name, found.n, *three(found.figures), f"{100 * found.pair.difference:+.1f}",
            f"{100 * low:+.1f} to {100 * high:+.1f}", round(found.forwards, 1), "*" if on_front else "",
        ))  # fmt: skip
    base = tuned.baseline
    lines = [table(HEAD, rows), f"baseline {base['run']}: {told(base)}", f"chosen: {tuned.chosen.strategy}"]
    if tuned.winner is not None:
        held = tuned.held_out
        peer = {name.removeprefix("baseline_"): value for name, value in held.items() if name.startswith("baseline_")}
        lines.append(
            f"held out (n = {held['n']}): {told(held)}; the baseline there: {told(peer)}; "
            f"the bound is {'kept' if held['kept'] else 'not shown to be kept'}"
        )
    return "\n".join(lines)


def explain(tuned: Tuned, bound: Bound) -> str:
    """Why the baseline is chosen, and what may show a candidate within the bound."""
    near = tuned.nearest
    items = bound.shown_by(near.pair)
    advice = "Add more careful values to --grid, or allow more --loss."
    if items is not None:
        advice = f"About --calibration {max(items, 2 * near.n)} may show it, or allow more --loss."
    return (
        f"No candidate is shown to be within {bound.points:g} points of {tuned.base.name} with {bound.confidence:.0%} "
        f"confidence; the nearest, {near.run.name}, differs by {100 * near.pair.difference:+.1f} "
        f"({100 * near.pair.interval[0]:+.1f} to {100 * near.pair.interval[1]:+.1f}). {advice}"
    )


def told(figures: Mapping[str, Any]) -> str:
    """Right, formed, both and forwards in words; formed is left out where only the answer is graded."""
    shares = zip(("right", "formed", "both"), three(figures), strict=True)
    grades = ", ".join(f"{share} % {name}" for name, share in shares if figures[name] is not None)
    return f"{grades} at {figures['forwards']:.1f} forwards"


def as_dict(tuned: Tuned) -> dict[str, object]:
    """What ``--json`` prints."""
    rows = [
        {
            "strategy": s.run.strategy,
            "n": s.n,
            "right": s.figures["right"],
            "formed": s.figures["formed"],
            "both": s.both,
            "forwards": s.forwards,
            "interval": s.pair.interval,
        }
        for s in tuned.candidates
    ]
    return {
        "strategy": tuned.chosen.strategy,
        "in_grid": tuned.winner is not None,
        "candidates": rows,
        "baseline": tuned.baseline,
        "held_out": tuned.held_out,
    }
