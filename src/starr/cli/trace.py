"""``starr trace``: what happened in a run, from its trace file: a page, a summary, or plots for a paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from starr.cli.files import check_out, write
from starr.cli.flags import Common, Json, Out
from starr.cli.report import clip, dump, note, table
from starr.cli.verb import group, verb
from starr.cli.vote import VoteOptions, vote
from starr.errors import InputError, did_you_mean
from starr.optional import need

PLOTS = ("token", "map", "curves")
HEAD = ("file", "strategy", "cache", "length", "forwards", "tokens", "commits", "revocations", "text")


@dataclass(frozen=True, kw_only=True)
class ShowTraceOptions(Common):
    """The flags of ``starr trace show``."""

    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Traces, as `starr run --trace` writes them.")]
    out: Out = None
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Common):
    """The flags of ``starr trace plot``."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace file.")]
    out: Annotated[Path, typer.Option("-o", "--out", help="Picture to write: .png or .svg.")]
    kind: Annotated[str, typer.Option(help="token (one position's life), map, or curves.")] = "map"
    position: Annotated[int | None, typer.Option(help="Position of the token plot.", show_default="the busiest")] = None


def add(app: typer.Typer) -> None:
    """Add ``starr trace`` and its verbs."""
    traces = group("Show or plot what happened in a run, or vote on its answer.")
    app.add_typer(traces, name="trace")
    verb(traces, "show", ShowTraceOptions, show)
    verb(traces, "plot", PlotOptions, plot)
    verb(traces, "vote", VoteOptions, vote)


def show(options: ShowTraceOptions) -> None:
    """Summarise traces, or with -o write a page.

    The page shows up to four of them side by side.
    """
    from starr.decode.trace import read

    check_out(options.out, "--out")
    bodies = [read(path) for path in options.files]
    if options.out is None:
        rows = [summary(path, body) for path, body in zip(options.files, bodies, strict=True)]
        if options.json:
            print(dump([dict(zip(HEAD, row, strict=True)) for row in rows]))
        else:
            print(table(HEAD, [(*row[:-1], clip(row[-1], 60)) for row in rows]))
        return
    from starr.viewer.html import build_page

    write(options.out, build_page(bodies, ", ".join(path.name for path in options.files)), options.quiet)


def summary(path: Path, body: dict[str, Any]) -> tuple[Any, ...]:
    """One trace's line of the table."""
    from starr.decode.trace import Action

    stats = body.get("stats", {})
    actions = [action for step in body["steps"] for action in step["action"]]
    return (
        str(path),
        body.get("strategy", ""),
        body.get("cache", ""),
        body.get("length", 0),
        stats.get("forwards", len(body["steps"])),
        stats.get("tokens", 0),
        actions.count(Action.COMMIT),
        actions.count(Action.REVOKE),
        body.get("text", ""),
    )


def plot(options: PlotOptions) -> None:
    """Draw a trace as a picture for a paper."""
    from starr.decode.trace import read

    if options.kind not in PLOTS:
        raise InputError(f"Unknown plot {options.kind!r}.", hint=did_you_mean(options.kind, PLOTS), param="kind")
    if options.out.suffix not in (".png", ".svg"):
        raise InputError(f"--out must end in .png or .svg, got {options.out}.", param="out")
    check_out(options.out, "--out")
    body = read(options.file)
    need("eval", "trace plot")
    from starr.viewer import plots

    draw(plots, options, body)
    note(f"wrote {options.out}", options.quiet)


def draw(plots: Any, options: PlotOptions, body: dict[str, Any]) -> None:
    """Make the plot that was asked for."""
    if options.kind == "token":
        plots.plot_token(body, options.out, position=options.position)
    elif options.position is not None:
        raise InputError("--position belongs to --kind token.", param="position")
    else:
        getattr(plots, f"plot_{options.kind}")(body, options.out)
