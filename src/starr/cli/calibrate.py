"""``starr calibrate``: fit a commit rule on a model and prompts."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.files import check_out, write
from starr.cli.flags import Json, ModelFlags
from starr.cli.report import dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError
from starr.named import check_range
from starr.optional import need

if TYPE_CHECKING:
    from starr.decode.strategies.calibrated.rule import FittedRule
    from starr.fit.calibrate.prompts import Prompt

LENGTH = 128  # canvas of a prompt that no task has one for


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(ModelFlags):
    """The flags of ``starr calibrate``."""

    tasks: Annotated[list[str] | None, typer.Argument(metavar="TASK", help="Benchmarks whose prompts are used.")] = None
    input: Annotated[
        Path | None, typer.Option("--input", help="A file of JSON lines with a prompt each, instead of a TASK.")
    ] = None
    kind: Annotated[str, typer.Option(help="What is fitted: rule (calibrated), or learn2pd (its block filter).")] = (
        "rule"
    )
    prompts: Annotated[int, typer.Option(help="Number of prompts, over all tasks.")] = 400
    max_tokens: Annotated[int | None, typer.Option(help="Canvas length.", show_default="each task's, or 128")] = None
    batch_size: Annotated[int, typer.Option(help="Rows decoded together.")] = 8
    seed: Annotated[int, typer.Option(help="Same seed, same rule.")] = 0
    out: Annotated[Path, typer.Option("-o", "--out", help="Rule file to write.")] = Path("rule.json")
    work: Annotated[Path, typer.Option(help="Folder for unfinished work; an interrupted run continues there.")] = Path(
        "runs/calibrate"
    )
    plot: Annotated[Path | None, typer.Option(help="Picture of the rule's reliability (png, svg).")] = None
    json: Json = False


def add(app: typer.Typer) -> None:
    """Add ``starr calibrate``."""
    verb(app, "calibrate", CalibrateOptions, run)


def run(options: CalibrateOptions) -> None:
    """Fit a commit rule on the model itself.

    Decodes prompts (no answers are needed), sees which proposals stand, and writes one JSON file for
    --strategy calibrated:rule=FILE.
    """
    from starr.evals.run.progress import spell
    from starr.fit.calibrate.costs import estimate, runs_of
    from starr.fit.calibrate.work import CalibrationPlan, calibrate

    if options.kind not in ("rule", "learn2pd"):
        raise InputError(f"--kind must be rule or learn2pd, got {options.kind}.", param="kind")
    if options.kind == "learn2pd":
        run_filter(options)
        return
    check_out(options.out, "--out")
    check_out(options.plot, "--plot")
    if options.plot is not None:
        need("eval", "--plot")
    check_range("--prompts", options.prompts, 20)
    prompts = read(options)
    plan = CalibrationPlan(batch_size=options.batch_size, seed=options.seed)
    model = options.load()
    ahead = spell(estimate(model, prompts, options.batch_size))
    note(f"{len(prompts)} prompts: about {ahead}; Ctrl-C and the same command continue", options.quiet)
    with progress(runs_of(len(prompts)), options.quiet) as watch:
        rule = calibrate(model, prompts, plan, folder=options.work, watch=watch)
    write(options.out, dump(rule.to_dict()) + "\n", options.quiet)
    if options.plot is not None:
        from starr.fit.calibrate.diagram import save_diagram

        save_diagram(rule, options.plot)
        note(f"wrote {options.plot}", options.quiet)
    print(dump({"rule": str(options.out), "budget": rule.budget, **rule.fitted_on, **rule.scores}) if options.json
          else show(rule))  # fmt: skip
    note(f"use it as --strategy calibrated:rule={options.out}", options.quiet)


def run_filter(options: CalibrateOptions) -> None:
    """Fit the block filter of learn2pd."""
    from starr.fit.calibrate.filter import FilterPlan, fit_filter

    check_out(options.out, "--out")
    check_range("--prompts", options.prompts, 20)
    prompts = read(options)
    plan = FilterPlan(batch_size=options.batch_size, seed=options.seed)
    model = options.load()
    with progress(2 * len(prompts), options.quiet) as watch:
        found = fit_filter(model, prompts, plan, watch)
    write(options.out, dump(found.to_dict()) + "\n", options.quiet)
    body = {"filter": str(options.out), "block": found.block, **found.fitted_on, **found.scores}
    print(dump(body) if options.json else table(("", ""), [(name, str(value)) for name, value in body.items()]))
    note(f"use it as --strategy learn2pd:filter={options.out}", options.quiet)


def read(options: CalibrateOptions) -> list[Prompt]:
    """The prompts, each with its canvas length."""
    from starr.cli.run_file import read_prompts
    from starr.fit.calibrate.prompts import Prompt, task_prompts

    if bool(options.tasks) == (options.input is not None):
        raise InputError("calibrate takes TASK or --input FILE, not both.", param="task")
    if options.tasks:
        found = task_prompts(options.tasks, options.prompts)
        return [replace(prompt, max_tokens=options.max_tokens or prompt.max_tokens) for prompt in found]
    assert options.input is not None
    rows = read_prompts(options.input)
    return [Prompt(row["prompt"], options.max_tokens or LENGTH) for row in rows][: options.prompts]


@contextmanager
def progress(total: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """A bar over all decoded rows on a terminal, a line after every tenth of them elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    if quiet or not sys.stderr.isatty():
        yield (lambda: None) if quiet else log_tenths(total)
        return
    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("decoding", total=total)
        yield lambda: shown.advance(task)


def log_tenths(total: int) -> Callable[[], None]:
    """What to call after each of ``total`` rows; every tenth of them gives a line with the time left."""
    from starr.evals.run.progress import spell

    begin, done = perf_counter(), itertools.count(1)

    def watch() -> None:
        count = next(done)
        if 10 * count // total > 10 * (count - 1) // total:
            left = (perf_counter() - begin) / count * (total - count)
            note(f"{count}/{total} rows decoded, about {spell(left)} left")

    return watch


def show(rule: FittedRule) -> str:
    """Reliability and budgets as tables."""
    scores: dict[str, Any] = rule.scores
    found = scores["reliability"]
    bins = [(row["said"], row["stood"], row["n"]) for row in found["bins"]]
    budgets = [(row["run"], f"{100 * row['sound']:.1f}", row["forwards"]) for row in scores["budgets"]]
    return "\n".join([
        table(("P said", "stood", "positions"), bins),
        f"calibration error {found['error']:.4f}, logistic loss {found['loss']:.4f}, "
        f"on {scores['held_out']} held-out positions",
        "",
        table(("budget", "sound texts %", "forwards"), budgets),
        f"default budget: {rule.budget:g}",
    ])  # fmt: skip
