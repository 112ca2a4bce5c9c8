"""``starr reproduce``: the paper's tables and figures on any model; ``starr analyze``: its patterns in your traces."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from starr.cli.benchmark import Shared
from starr.cli.flags import Common, Json
from starr.cli.ray import Workers
from starr.cli.report import dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError
from starr.optional import need
from starr.options import EVAL, options_at

# Flags that a result depends on, besides the options of decoding.
COUNTS = ("model", "dtype", "limit", "batch_size", "max_tokens", "form", "block_length")


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Shared, Workers):
    """The flags of ``starr reproduce``."""

    result: Annotated[
        str,
        typer.Argument(
            metavar="RESULT",
            help="table1 table2 table3 table5 ablation sensitivity case-study patterns zones front limit calibrated "
            "parallel, or all.",
        ),
    ]
    task: Annotated[str, typer.Option(help="The benchmark.")] = "word-problems"
    block_length: Annotated[int, typer.Option(help="Block length of table5.")] = 32
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write to.")] = Path("results")
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class AnalyzeOptions(Common):
    """The flags of ``starr analyze``."""

    files: Annotated[list[Path], typer.Argument(metavar="TRACE", help="Traces, as `starr run --trace` writes them.")]
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for tables and figures.")] = None
    json: Json = False


def add(app: typer.Typer) -> None:
    """Add ``starr reproduce`` and ``starr analyze``."""
    verb(app, "reproduce", ReproduceOptions, run)
    verb(app, "analyze", AnalyzeOptions, analyze)


def run(options: ReproduceOptions) -> None:
    """Reproduce a result of the paper.

    Writes NAME.md, .json and .png. Samples are kept in OUT/samples, one folder per checkpoint, so that results
    share runs and an interrupted command continues where it stopped. With --ray samples come from workers; the few
    traces that figures need are decoded here.
    """
    from starr.evals.run.bench import Bench
    from starr.evals.run.evaluate import open_store
    from starr.research.reproduce import check_name, reproduce

    names = check_name(options.result)
    need("eval", "The figure of a result")
    size, screen = options.size(), sys.stdout
    model, task, settings = options.prepare(options.task)
    store = open_store(options.out / "samples" / settings.folder, settings, [], resume=True)
    bench = Bench(model, task, settings, store, options.limit, options.batch_size, options.block_length, options.quiet)
    with nullcontext() if size is None else options.on_workers(size, task) as remote:
        bench = replace(bench, decoder=remote)
        for name in names:
            result, paths = reproduce(name, bench, command(name, options), options.out)
            print(dump(list(result.rows)) if options.json else show(result.title, result.rows), file=screen, flush=True)
            note(f"wrote {', '.join(str(path) for path in paths)}", options.quiet)


def command(name: str, options: ReproduceOptions) -> str:
    """The command that reproduces this one result, with every option that is not the default."""
    parts = ["starr reproduce", name, f"--task {options.task}"]
    flags = [(field.name, getattr(options, field.name), field.default) for field in fields(options)]
    given = [flag for flag in flags if flag[0] in COUNTS]
    given += [(option.name, getattr(options.decoding, option.name), option.default) for option in options_at(EVAL)]
    parts += [f"--{name.replace('_', '-')} {value}" for name, value, default in given if value != default]
    return " ".join(parts)


def show(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A result's title and table."""
    columns = list(rows[0])
    cells = [["–" if row[column] is None else row[column] for column in columns] for row in rows]
    return f"{title}\n{table(columns, cells)}\n"


def analyze(options: AnalyzeOptions) -> None:
    """Find the paper's patterns and zones in traces.

    Prints their shares; -o writes tables and figures.
    """
    from starr.decode.trace import read
    from starr.research.dynamics import analyse
    from starr.research.reproduce import context
    from starr.research.reproduce.patterns import patterns_result, zones_result
    from starr.research.reproduce.result import write_result

    if options.out is not None and options.out.is_file():
        raise InputError(f"--out must be a folder, {options.out} is a file.", param="out")
    if options.out is not None:
        need("eval", "The figure of a result")
    traces = [read(path) for path in options.files]
    found = analyse(traces)
    source = f"{len(traces)} trace{'s' if len(traces) > 1 else ''}"
    results = [patterns_result(found, source), zones_result(found, source)]
    for result in results:
        print(dump(list(result.rows)) if options.json else show(result.title, result.rows))
    if options.out is not None:
        where = context("starr analyze " + " ".join(map(str, options.files)), traces[0].get("model", ""), "your traces")
        for result in results:
            write_result(result, where, options.out)
        note(f"wrote {options.out}", options.quiet)
