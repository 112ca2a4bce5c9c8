"""``starr eval``: accuracy and cost of strategies on a benchmark; ``reproduce``, ``analyze`` and ``tune`` join here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli import reproduce, tuning
from starr.cli.benchmark import Shared
from starr.cli.flags import Json, flag_of
from starr.cli.ray import Workers
from starr.cli.report import clip, dump, note, table, three
from starr.cli.verb import verb
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.evals.run.runs import Run
    from starr.model.spec import Habits

GRADES = ("run", "n", "right %", "formed %", "both %", "95 % interval")
COSTS = ("run", "forwards", "positions", "tokens/forward", "with end", "tokens/s", "p95 s")
PAIRS = ("first − second", "n", "difference", "95 % interval", "McNemar p")
NAME = 36  # characters of a run's name in a table; the files have it whole


@dataclass(frozen=True, kw_only=True)
class EvalOptions(Shared, Workers):
    """The flags of ``starr eval``."""

    task: Annotated[str, typer.Argument(metavar="TASK", help="A benchmark, or `merge` to join run folders.")]
    folders: Annotated[list[Path] | None, typer.Argument(metavar="FOLDER", help="With merge: run folders.")] = None
    strategy: Annotated[list[str], typer.Option(help="A strategy to measure; repeatable.")] = ()  # type: ignore[assignment]
    cache: Annotated[list[str], typer.Option(help="A cache to combine each with; repeatable.")] = ()  # type: ignore[assignment]
    block_length: Annotated[int | None, flag_of("block_length")] = None
    ice: Annotated[str | None, flag_of("ice")] = None
    verify: Annotated[
        list[float], typer.Option(metavar="RATIO", help="A ratio to verify each with, 0 for none; repeatable.")
    ] = ()  # type: ignore[assignment]
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Run folder.", show_default="runs/TASK")] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue with the samples in the run folder.")] = False
    shard: Annotated[str | None, typer.Option(help="i/n: every n-th item, starting with the i-th.")] = None
    until_sure: Annotated[
        float | None, typer.Option(help="Stop once every paired difference is known to within this many points.")
    ] = None
    json: Json = False


def add(app: typer.Typer) -> None:
    """Add ``starr eval``, ``reproduce``, ``analyze`` and ``tune``."""
    verb(app, "eval", EvalOptions, evaluate)
    reproduce.add(app)
    tuning.add(app)


def evaluate(options: EvalOptions) -> None:
    """Measure strategies on a benchmark.

    Tasks: word-problems, list-functions, lines and grids (in the package), gsm8k, math500, humaneval, mbpp. Right is
    the answer's grade, formed says that every part of the text is one that the task allows, and comparisons go by both;
    for the last four, only the answer is graded. Samples are written as they finish; results.json and
    report.html follow. `starr eval merge FOLDER... -o OUT` joins shards.
    """
    from starr.evals.run.evaluate import Evaluation, carry_out, merge_runs, run_evaluation
    from starr.evals.run.runner import Workload
    from starr.evals.run.runs import choose, parse_shard
    from starr.model.spec import Habits

    if options.task == "merge":
        if options.out is None:
            raise InputError("merge needs --out, a new folder.", param="out")
        show(merge_runs(options.folders or [], options.out), options.out, options)
        return
    if options.folders:
        raise InputError(f"eval takes one TASK, but also got {options.folders[0]}.", param="task")
    runs = complete_runs(options, Habits())  # wrong forms are refused before a model is loaded
    if options.until_sure is not None and len(runs) < 2:
        raise InputError("--until-sure compares runs: give at least two strategies or caches.", param="until_sure")
    shard = parse_shard(options.shard)
    out, size = options.out or Path("runs") / options.task, options.size()
    if size is not None:
        task = options.check(options.task)
        with options.on_workers(size, task) as remote:
            runs = complete_runs(options, remote.habits())
            work = Workload(choose(task, options.limit, shard), runs, options.batch_size, options.until_sure)
            job = Evaluation(task, remote.settings(), work, out, options.resume, options.quiet)
            results = carry_out(job, remote)
        show(results, out, options)
        return
    model, task, settings = options.prepare(options.task)
    runs = complete_runs(options, model.spec.habits)
    work = Workload(choose(task, options.limit, shard), runs, options.batch_size, options.until_sure)
    show(run_evaluation(model, Evaluation(task, settings, work, out, options.resume, options.quiet)), out, options)


def complete_runs(options: EvalOptions, habits: Habits) -> list[Run]:
    """The runs asked for, with the model's own strategy, cache and block length where none was."""
    from starr.evals.run.runs import make_runs

    forms = options.strategy or [habits.strategy], options.cache or [habits.cache]
    asked = options.block_length
    length = habits.block_length if asked is None and not options.ice else asked
    return make_runs(*forms, length, options.ice, options.verify or [0.0])


def show(results: dict[str, Any], out: Path, options: EvalOptions) -> None:
    """The results as a table or as JSON."""
    from starr.evals.run.report import notes

    if options.json:
        print(dump(results))
        return
    runs = results["runs"]
    tables = [table(GRADES, [grades(run) for run in runs]), table(COSTS, [costs(run) for run in runs])]
    if results["pairs"]:
        tables.append(table(PAIRS, [pair_line(pair) for pair in results["pairs"]]))
    print("\n\n".join(tables))
    for text in notes(results):
        note(text, options.quiet)
    note(f"wrote {out}: samples.jsonl, results.json, report.html", options.quiet)


def percent(pair: Sequence[float]) -> str:
    """An interval of shares in percent."""
    return f"{100 * pair[0]:.1f} to {100 * pair[1]:.1f}"


def grades(run: dict[str, Any]) -> tuple[Any, ...]:
    """One run's line of the table of grades."""
    return clip(run["run"], NAME), run["n"], *three(run), percent(run["both_interval"])


def costs(run: dict[str, Any]) -> tuple[Any, ...]:
    """One run's line of the table of costs."""
    return (
        clip(run["run"], NAME), round(run["forwards"], 1), round(run["positions"]),
        round(run["tokens_per_forward"], 2), round(run["tokens_per_forward_with_end"], 2),
        round(run["time"]["tokens_per_second"], 1), round(run["time"]["latency_p95"], 2),
    )  # fmt: skip


def pair_line(pair: dict[str, Any]) -> tuple[Any, ...]:
    """One line of the table of differences."""
    names = f"{clip(pair['first'], NAME // 2)} − {clip(pair['second'], NAME // 2)}"
    return names, pair["n"], round(100 * pair["difference"], 1), percent(pair["interval"]), round(pair["mcnemar_p"], 4)
