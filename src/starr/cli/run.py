"""``starr run``: one prompt, or a file of them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.files import check_out, read_prompt, write
from starr.cli.flags import Decode, Json, Live, Out, Prompt, flag_of
from starr.cli.known import remark, remark_holes, remark_thinking
from starr.cli.ray import Workers
from starr.cli.report import dump, figures, note
from starr.cli.verb import verb
from starr.errors import InputError
from starr.options import ManyOptions, Options

if TYPE_CHECKING:
    from starr.decode.trace import Generation
    from starr.model.files.memory import Room
    from starr.model.load import Model


@dataclass(frozen=True, kw_only=True)
class RunOptions(Decode, Workers):
    """The flags of ``starr run``."""

    prompt: Prompt = None
    input: Annotated[
        Path | None,
        typer.Option("--input", help='Many prompts, a line each: text, or JSON with "prompt" or "messages".'),
    ] = None
    n: Annotated[int | None, flag_of("n")] = None
    seeds: Annotated[str, flag_of("seeds")] = ""
    infill: Annotated[bool, typer.Option("--infill", help="Fill the [MASK:n] holes of the prompt.")] = False
    out: Out = None
    json: Json = False
    live: Live = False
    trace: Annotated[Path | None, typer.Option("--trace", help="Write every step to this JSON file.")] = None
    html: Annotated[Path | None, typer.Option("--html", help="Write every step to this page.")] = None
    batch_size: Annotated[int, typer.Option(help="Prompts of --input decoded together.")] = 8
    resume: Annotated[
        bool, typer.Option("--resume", help="With --input and --out: continue after the last line written.")
    ] = False

    def parse(self) -> Options:
        """Parse the options of decoding, and say whether the prompt has holes and whether steps are kept."""
        return replace(super().parse(), infill=self.infill, trace=bool(self.trace or self.html))

    def list_seeds(self) -> list[int] | None:
        """The seeds of the answers to each prompt; None where one answer was asked for."""
        asked = ManyOptions(n=self.n, seeds=self.seeds, seed=self.decoding.seed)
        found = asked.list_seeds()
        return found if asked.several else None

    def room(self) -> Room:
        """One row, unless there is a file of prompts."""
        found = super().room()
        return found if self.input is not None else replace(found, rows=1)


def add(app: typer.Typer) -> None:
    """Add ``starr run``."""
    verb(app, "run", RunOptions, run)


def run(options: RunOptions) -> None:
    """Decode a prompt, or a file of them.

    The text goes to standard output, the figures to standard error.
    """
    if options.prompt is not None and options.input is not None:
        raise InputError("run takes a PROMPT (or -) or --input FILE, not both.", param="prompt")
    for path, name in ((options.out, "--out"), (options.trace, "--trace"), (options.html, "--html")):
        check_out(path, name)
    if options.input is not None:
        from starr.cli.run_file import run_file

        run_file(options, options.input)
    elif options.ray is not None or options.resume:
        raise InputError("--ray and --resume are for --input.", param="input")
    elif (seeds := options.list_seeds()) is not None:
        run_several(options, read_prompt(options.prompt), seeds)
    else:
        run_one(options, read_prompt(options.prompt))


def run_one(options: RunOptions, prompt: str) -> None:
    """Decode one prompt; give its text, figures and, where asked for, its trace."""
    import starr

    decoding = options.parse()
    model = options.load()
    remark(model, prompt, options.quiet)
    remark_holes([prompt], options.infill, options.quiet)
    decode = decode_live if options.live else starr.generate
    generation = decode(model, prompt, **decoding.keywords())
    remark_thinking(generation.text, decoding.ice, options.quiet)
    result = dump(generation.to_dict()) if options.json else generation.text
    give(result, options.out, options.quiet)
    note(figures(generation.stats), options.quiet or options.live)
    save_trace(generation, options)


def run_several(options: RunOptions, prompt: str, seeds: list[int]) -> None:
    """Decode several answers to one prompt: texts with a blank line between them, or one line of JSON each."""
    import starr

    for flag, given in (("--live", options.live), ("--trace", options.trace), ("--html", options.html)):
        if given:
            raise InputError(f"{flag} shows one run.", hint="Leave --n and --seeds out.", param=flag)
    decoding = options.parse()
    model = options.load()
    remark(model, prompt, options.quiet)
    found = starr.generate(model, prompt, seeds=seeds, batch_size=options.batch_size, **decoding.keywords())
    texts = [dump(each.to_dict()) if options.json else each.text for each in found]
    give(("\n" if options.json else "\n\n").join(texts), options.out, options.quiet)
    for each in found:
        note(f"seed {each.seed}: {figures(each.stats)}", options.quiet)


def give(result: str, out: Path | None, quiet: bool) -> None:
    """Print the result, or write it; what cannot be written is printed, so that it is not lost."""
    if out is None:
        print(result)
        return
    try:
        write(out, result + "\n", quiet)
    except OSError:
        print(result)
        raise


def decode_live(model: Model, prompt: str, **arguments: Any) -> Generation:
    """Decode with the canvas drawn on standard error, so that standard output still holds only the text."""
    import starr
    from starr.viewer.terminal import Live

    generation = None
    chosen = starr.strategy(arguments["strategy"] or model.spec.habits.strategy)
    with Live([chosen.name], stream=sys.stderr) as screen:
        for event in starr.stream(model, prompt, **arguments):
            screen.show(event)
            generation = event.generation
    assert generation is not None
    return generation


def save_trace(generation: Generation, options: RunOptions) -> None:
    """Write the trace and the page that were asked for."""
    if generation.trace is None:
        return
    body = generation.trace.to_dict()
    if options.trace is not None:
        write(options.trace, json.dumps(body, ensure_ascii=False), options.quiet)
    if options.html is not None:
        from starr.viewer.html import build_page

        write(options.html, build_page([body], f"Every step of a run by {generation.strategy}"), options.quiet)
