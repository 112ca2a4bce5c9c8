"""``starr eval``: accuracy and cost of strategies on a benchmark; ``reproduce``, ``analyze`` and ``tune`` join here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from starr.cli import reproduce, tuning
from starr.cli.benchmark import Shared
from starr.cli.flags import Json
from starr.cli.report import dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError

HEAD = (
    "run",
    "n",
    "accuracy %",
    "95 % interval",
    "forwards",
    "positions",
    "tokens/forward",
    "with end",
    "tokens/s",
    "p95 s",
)
PAIR_HEAD = ("first − second", "n", "difference", "95 % interval", "McNemar p")


@dataclass(frozen=True, kw_only=True)
class Options(Shared):
    task: Annotated[str, typer.Argument(metavar="TASK", help="A benchmark, or `merge` to join run folders.")]
    folders: Annotated[list[Path] | None, typer.Argument(metavar="[FOLDER]...", help="With merge: run folders.")] = None
    strategy: Annotated[list[str], typer.Option(help="May be given many times.")] = ()  # type: ignore[assignment]
    cache: Annotated[list[str], typer.Option(help="May be given many times.")] = ()  # type: ignore[assignment]
    block_length: Annotated[int | None, typer.Option(help="Decode in blocks of this length.")] = None
    ice: Annotated[str | None, typer.Option(help="In-place prompting: ice-sp or ice-pp.")] = None
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Run folder.", show_default="runs/TASK")] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the samples in the run folder.")] = False
    shard: Annotated[str | None, typer.Option(help="i/n: every n-th item from the i-th on.")] = None
    until_sure: Annotated[
        float | None, typer.Option(help="Stop when every paired difference is known within this many points.")
    ] = None
    json: Json = False


def add(app: typer.Typer) -> None:
    verb(app, "eval", Options, evaluate)
    reproduce.add(app)
    tuning.add(app)


def evaluate(options: Options) -> None:
    """Measure strategies on a benchmark.

    Tasks: word-problems and list-functions (in the package), gsm8k, math500, humaneval, mbpp. Samples are written as
    they finish; results.json and report.html follow. `starr eval merge FOLDER... -o OUT` joins shards.
    """
    from starr.evals.evaluate import Job, merge_runs, run_job
    from starr.evals.runner import Plan
    from starr.evals.runs import choose, make_runs, parse_shard

    if options.task == "merge":
        if options.out is None:
            raise InputError("merge needs --out, a new folder.", param="out")
        show(merge_runs(options.folders or [], options.out), options.out, options)
        return
    if options.folders:
        raise InputError(f"eval takes one TASK, got also {options.folders[0]}.", param="task")
    runs = make_runs(options.strategy or ["starr"], options.cache or ["none"], options.block_length, options.ice)
    if options.until_sure is not None and len(runs) < 2:
        raise InputError("--until-sure compares runs: give at least two strategies or caches.", param="until_sure")
    shard = parse_shard(options.shard)
    model, task, settings = options.prepare(options.task)
    out = options.out or Path("runs") / options.task
    plan = Plan(choose(task, options.limit, shard), runs, options.batch_size, options.until_sure)
    show(run_job(model, Job(task, settings, plan, out, options.resume, options.quiet)), out, options)


def show(results: dict[str, Any], out: Path, options: Options) -> None:
    """The results as a table or as JSON."""
    if options.json:
        print(dump(results))
        return
    print(table(HEAD, [line(run) for run in results["runs"]]))
    if results["pairs"]:
        print()
        print(table(PAIR_HEAD, [pair_line(pair) for pair in results["pairs"]]))
    note(f"Written to {out}: samples.jsonl, results.json, report.html", options.quiet)


def percent(pair: Sequence[float]) -> str:
    return f"{100 * pair[0]:.1f} to {100 * pair[1]:.1f}"


def line(run: dict[str, Any]) -> tuple[Any, ...]:
    return (
        run["run"], run["n"], round(100 * run["accuracy"], 1), percent(run["accuracy_interval"]),
        round(run["forwards"], 1), round(run["positions"]), round(run["tokens_per_forward"], 2),
        round(run["tokens_per_forward_with_end"], 2), round(run["time"]["tokens_per_second"], 1),
        round(run["time"]["latency_p95"], 2),
    )  # fmt: skip


def pair_line(pair: dict[str, Any]) -> tuple[Any, ...]:
    names = f"{pair['first']} − {pair['second']}"
    return names, pair["n"], round(100 * pair["difference"], 1), percent(pair["interval"]), round(pair["mcnemar_p"], 4)
