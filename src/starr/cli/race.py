"""``starr race``: several strategies on one prompt, one table."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.files import check_out, read_prompt, write
from starr.cli.flags import Canvas, Json, Live, Out
from starr.cli.report import clip, dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.strategy.base import Strategy
    from starr.trace import Generation

HEAD = ("strategy", "forwards", "positions", "tokens/forward", "seconds", "revocations", "text")
LANES = 4  # of the page


@dataclass(frozen=True, kw_only=True)
class Options(Canvas):
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The prompt; - reads standard input.")]
    strategies: Annotated[str, typer.Option(help="Text forms separated by commas, or all.")] = (
        "confidence,threshold,starr"
    )
    answer: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The right answer: says which strategies found it.")
    ] = None
    out: Out = None
    json: Json = False
    live: Live = False


def add(app: typer.Typer) -> None:
    verb(app, "race", Options, race)


def race(options: Options) -> None:
    """Compare strategies on one prompt.

    Prints one table, fewest forwards first; -o writes a page that shows up to four of them on one clock.
    """
    import starr

    check_out(options.out, "--out")
    prompt = read_prompt(options.prompt)
    runners = [starr.strategy(text) for text in split_forms(options.strategies)]
    arguments = options.arguments() | {"trace": options.out is not None}
    model = options.load()
    starr.generate(model, prompt, **(arguments | {"max_forwards": 1}))  # the first forward of a process is slower
    if options.strategies.strip() == "all":
        runners = [runner for runner in runners if servable(model, prompt, runner, arguments, options.quiet)]
    results = list(run_lanes(model, prompt, runners, arguments, options.live and not options.quiet))
    results.sort(key=lambda result: result.stats.forwards)
    right = [None if options.answer is None else is_right(result.text, options.answer) for result in results]
    print(dump(as_dicts(results, right)) if options.json else show(results, right))
    if options.out is not None:
        write_page(options, results, right)


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


def servable(model: Model, prompt: str, runner: Strategy, arguments: dict[str, Any], quiet: bool) -> bool:
    """Whether a strategy can be had with these options; says why not, if it is the strategy or its cache."""
    from starr.api import options_from, request_of
    from starr.request import check_request

    try:
        check_request(request_of(model, prompt, options_from(arguments | {"strategy": runner})), model)
    except InputError as error:
        if error.param not in ("strategy", "cache"):
            raise
        note(f"Left out {runner.name}: {error}", quiet)
        return False
    return True


def run_lanes(
    model: Model, prompt: str, runners: list[Strategy], arguments: dict[str, Any], live: bool
) -> Iterable[Generation]:
    """One after the other, so that each has the machine to itself and seconds compare."""
    import starr

    if not live:
        yield from (starr.generate(model, prompt, strategy=runner, **arguments) for runner in runners)
        return
    from starr.viewer.terminal import Live

    with Live([runner.name for runner in runners], stream=sys.stderr) as screen:
        for lane, runner in enumerate(runners):
            for event in starr.stream(model, prompt, strategy=runner, **arguments):
                screen.show(event, lane)
                if event.generation is not None:
                    yield event.generation


def is_right(text: str, answer: str) -> bool:
    """Whether a text's final number equals a numeric answer, or the text contains one in words."""
    from starr.evals.extract import final, same_value, value

    return same_value(final(text), answer) if value(answer) is not None else answer.strip().lower() in text.lower()


def as_dicts(results: list[Generation], right: list[bool | None]) -> list[dict[str, Any]]:
    """What ``starr run --json`` prints of each, and ``correct`` where the answer is known."""
    told = ({} if known is None else {"correct": known} for known in right)
    return [result.to_dict() | more for result, more in zip(results, told, strict=True)]


def show(results: list[Generation], right: list[bool | None]) -> str:
    """The table; its texts fill what is left of the terminal's width."""
    marks = {None: "", True: "✓ ", False: "✗ "}
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
    width = max(len(line) for line in table(HEAD[:-1], rows).splitlines())
    room = max(40, shutil.get_terminal_size((200, 24)).columns - width - 2)
    texts = [clip(marks[known] + result.text, room) for result, known in zip(results, right, strict=True)]
    return table(HEAD, [(*row, text) for row, text in zip(rows, texts, strict=True)])


def write_page(options: Options, results: list[Generation], right: list[bool | None]) -> None:
    """The page of the first lanes, on one clock."""
    from starr.viewer.html import page

    assert options.out is not None
    if len(results) > LANES:
        note(f"the page shows the {LANES} with the fewest forwards of {len(results)}", options.quiet)
    lanes = zip(results[:LANES], right, strict=False)
    traces = [replace(r.trace, answer=options.answer, correct=known).to_dict() for r, known in lanes if r.trace]
    write(options.out, page(traces, "starr race"))
