"""``starr race``: several strategies on one prompt, one table."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.files import check_out, read_prompt, write
from starr.cli.flags import Decode, Json, Live, Out, Prompt, option_flags
from starr.cli.known import remark
from starr.cli.report import clip, dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError
from starr.options import Options

if TYPE_CHECKING:
    from starr.decode.strategies.base import Strategy
    from starr.decode.trace import Generation
    from starr.model.load import Model

HEAD = ("strategy", "forwards", "positions", "tokens/forward", "seconds", "revocations", "text")
LANES = 4  # of the page
LEAST_ROOM = 30  # characters of a text beside the figures


@dataclass(frozen=True, kw_only=True)
class RaceOptions(Decode):
    """The flags of ``starr race``."""

    prompt: Prompt = None
    strategies: Annotated[str, typer.Option(help="Text forms separated by commas, or all.")] = (
        "confidence,threshold,starr"
    )
    answer: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The right answer, to mark the strategies that found it.")
    ] = None
    out: Out = None
    json: Json = False
    live: Live = False
    decoding: Options = option_flags(leave=("strategy",))


def add(app: typer.Typer) -> None:
    """Add ``starr race``."""
    verb(app, "race", RaceOptions, race)


def race(options: RaceOptions) -> None:
    """Compare strategies on one prompt.

    Prints one table, fewest forwards first; -o writes a page that shows up to four of them on one clock.
    """
    import starr

    check_out(options.out, "--out")
    prompt = read_prompt(options.prompt)
    runners = [starr.strategy(text) for text in split_forms(options.strategies)]
    decoding = replace(options.parse(), trace=options.out is not None)
    model = options.load()
    remark(model, prompt, options.quiet)
    starr.generate(model, prompt, **replace(decoding, max_forwards=2).keywords())  # a process's first forward is slow
    if options.strategies.strip() == "all":
        runners = [runner for runner in runners if servable(model, prompt, runner, decoding, options.quiet)]
    results = list(run_lanes(model, prompt, runners, decoding, options.live and not options.quiet))
    results.sort(key=lambda result: result.stats.forwards)
    grades = [judge(prompt, result.text, options.answer) for result in results]
    print(dump(as_dicts(results, grades)) if options.json else show(results, grades))
    if options.out is not None:
        write_page(options, results, grades)


def split_forms(text: str) -> list[str]:
    """Text forms from a list whose commas separate forms and their options alike; ``all`` is every strategy."""
    if text.strip() == "all":
        import starr

        return [entry.name for entry in starr.strategies()]
    forms: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        is_option = "=" in part and ":" not in part.partition("=")[0]
        if is_option and forms:
            forms[-1] += f",{part}"
        else:
            forms.append(part)
    if not forms:
        raise InputError("--strategies must name at least one strategy.", param="strategies")
    return forms


def servable(model: Model, prompt: str, runner: Strategy, decoding: Options, quiet: bool) -> bool:
    """Whether a strategy can be used with these options; says why not, if the strategy or its cache is the reason."""
    from starr.api import build_request

    try:
        build_request(model, prompt, replace(decoding, strategy=runner))
    except InputError as error:
        if error.param not in ("strategy", "cache"):
            raise
        note(f"Left out {runner.name}: {error}", quiet)
        return False
    return True


def run_lanes(
    model: Model, prompt: str, runners: list[Strategy], decoding: Options, live: bool
) -> Iterable[Generation]:
    """One after the other, so that each has the machine to itself and seconds are comparable."""
    import starr

    lanes = [replace(decoding, strategy=runner).keywords() for runner in runners]
    if not live:
        yield from (starr.generate(model, prompt, **arguments) for arguments in lanes)
        return
    from starr.viewer.terminal import Live

    with Live([runner.name for runner in runners], stream=sys.stderr) as screen:
        for lane, arguments in enumerate(lanes):
            for event in starr.stream(model, prompt, **arguments):
                screen.show(event, lane)
                if event.generation is not None:
                    yield event.generation


def judge(prompt: str, text: str, answer: str | None) -> dict[str, bool]:
    """``right`` where the answer is given; also ``formed`` and ``both`` where the prompt is a packaged problem's."""
    if answer is not None:
        return {"right": is_right(text, answer)}
    from starr.evals.tasks.bundled import judge as judge_packaged

    found = judge_packaged(prompt, text)
    return {} if found is None else {"right": found[0], "formed": found[1], "both": all(found)}


def is_right(text: str, answer: str) -> bool:
    """Whether a text's final number equals a numeric answer, or the text contains one in words."""
    from starr.evals.grading.extract import final, same_value, value

    return same_value(final(text), answer) if value(answer) is not None else answer.strip().lower() in text.lower()


def as_dicts(results: list[Generation], grades: list[dict[str, bool]]) -> list[dict[str, Any]]:
    """What ``starr run --json`` prints for each, and its grades where they are known."""
    return [result.to_dict() | known for result, known in zip(results, grades, strict=True)]


def show(results: list[Generation], grades: list[dict[str, bool]]) -> str:
    """The table; its texts fill what is left of the terminal's width, or stand below where little is left."""
    rows = [
        (
            result.strategy,
            result.stats.forwards,
            result.stats.positions,
            round(result.stats.tokens_per_forward, 2),
            round(result.stats.seconds, 3),
            result.stats.revocations,
        )
        for result in results
    ]
    figures = table(HEAD[:-1], rows)
    columns = shutil.get_terminal_size((200, 24)).columns
    room = columns - max(map(len, figures.splitlines())) - 2
    marks = [" ".join(f"{'✓' if good else '✗'} {name}" for name, good in known.items()) for known in grades]
    texts = [f"{mark} {result.text}" for result, mark in zip(results, marks, strict=True)]
    if room >= LEAST_ROOM:
        return table(HEAD, [(*row, clip(text, room)) for row, text in zip(rows, texts, strict=True)])
    below = (clip(f"{result.strategy}: {text}", columns) for result, text in zip(results, texts, strict=True))
    return "\n".join((figures, "", *below))


def write_page(options: RaceOptions, results: list[Generation], grades: list[dict[str, bool]]) -> None:
    """The page of the first lanes, on one clock."""
    from starr.viewer.html import build_page

    assert options.out is not None
    if len(results) > LANES:
        note(f"the page shows the {LANES} with the fewest forwards of {len(results)}", options.quiet)
    lanes = zip(results[:LANES], grades, strict=False)
    traces = [
        replace(r.trace, answer=options.answer, right=known.get("right"), formed=known.get("formed")).to_dict()
        for r, known in lanes
        if r.trace
    ]
    write(options.out, build_page(traces, "starr race"), options.quiet)
