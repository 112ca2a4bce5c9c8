"""``starr run``: one prompt, or a file of them."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.files import check_out, read_prompt, read_text, write
from starr.cli.flags import Decode, Json, Live, Out
from starr.cli.report import dump, figures, note
from starr.cli.verb import verb
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.trace import Generation

CHUNK = 4  # batches decoded between two writes of --input


@dataclass(frozen=True, kw_only=True)
class Options(Decode):
    prompt: Annotated[str | None, typer.Argument(metavar="PROMPT", help="The prompt; - reads standard input.")] = None
    input: Annotated[
        Path | None, typer.Option("--input", help='Many prompts, one JSON line each: {"prompt": "..."} or "...".')
    ] = None
    infill: Annotated[bool, typer.Option("--infill", help="Fill the [MASK:n] holes of the prompt.")] = False
    out: Out = None
    json: Json = False
    live: Live = False
    trace: Annotated[Path | None, typer.Option("--trace", help="Write every step to this JSON file.")] = None
    html: Annotated[Path | None, typer.Option("--html", help="Write every step to this page.")] = None
    batch_size: Annotated[int, typer.Option(help="Prompts of --input decoded together.")] = 8

    def arguments(self) -> dict[str, Any]:
        """As of every verb that decodes, and whether the prompt is text with holes."""
        return super().arguments() | {"infill": self.infill}


def add(app: typer.Typer) -> None:
    verb(app, "run", Options, run)


def run(options: Options) -> None:
    """Decode a prompt, or a file of them.

    The text goes to standard output, the figures to standard error.
    """
    if (options.prompt is None) == (options.input is None):
        raise InputError("run takes a PROMPT (or -), or --input FILE, and not both.", param="prompt")
    for path, name in ((options.out, "--out"), (options.trace, "--trace"), (options.html, "--html")):
        check_out(path, name)
    if options.input is not None:
        run_file(options, options.input)
    else:
        assert options.prompt is not None
        run_one(options, read_prompt(options.prompt))


def run_one(options: Options, prompt: str) -> None:
    import starr

    arguments = options.arguments() | {"trace": bool(options.trace or options.html)}
    model = options.load()
    decode = decode_live if options.live else starr.generate
    generation = decode(model, prompt, **arguments)
    result = dump(generation.to_dict()) if options.json else generation.text
    give(result, options.out)
    note(figures(generation.stats), options.quiet or options.live)
    save_trace(generation, options)


def give(result: str, out: Path | None) -> None:
    """Print the result, or write it; what cannot be written is printed, so that it is not lost."""
    if out is None:
        print(result)
        return
    try:
        write(out, result + "\n")
    except OSError:
        print(result)
        raise


def decode_live(model: Model, prompt: str, **arguments: Any) -> Generation:
    """Decode with the canvas drawn on standard error, so that standard output still holds only the text."""
    import starr
    from starr.viewer.terminal import Live

    generation = None
    with Live([arguments["strategy"].name], stream=sys.stderr) as screen:
        for event in starr.stream(model, prompt, **arguments):
            screen.show(event)
            generation = event.generation
    assert generation is not None
    return generation


def save_trace(generation: Generation, options: Options) -> None:
    if generation.trace is None:
        return
    body = generation.trace.to_dict()
    if options.trace is not None:
        write(options.trace, json.dumps(body, ensure_ascii=False))
    if options.html is not None:
        from starr.viewer.html import page

        write(options.html, page([body], f"starr run: {generation.strategy}"))


def run_file(options: Options, path: Path) -> None:
    """Decode a file of prompts; results are written as they come, so that an interruption keeps those that are done."""
    import starr

    for flag, given in (("--live", options.live), ("--trace", options.trace), ("--html", options.html)):
        if given:
            raise InputError(f"{flag} shows one run.", hint="Give it a PROMPT instead of --input.", param=flag)
    if options.batch_size < 1:
        raise InputError(f"--batch-size must be at least 1, got {options.batch_size}.", param="batch_size")
    rows = read_prompts(path)
    arguments = options.arguments() | {"batch_size": options.batch_size}
    model = options.load()
    step = CHUNK * options.batch_size
    with open(options.out, "w", encoding="utf8") if options.out else nullcontext(sys.stdout) as stream:
        for start in range(0, len(rows), step):
            chunk = rows[start : start + step]
            results = starr.generate(model, [row["prompt"] for row in chunk], **arguments)
            for row, generation in zip(chunk, results, strict=True):
                extra = {key: value for key, value in row.items() if key != "prompt"}
                print(dump(extra | generation.to_dict()), file=stream)
            stream.flush()
            note(f"{min(start + step, len(rows))} of {len(rows)} prompts", options.quiet)


def read_prompts(path: Path) -> list[dict[str, Any]]:
    """Rows with a ``prompt`` (text or messages) and whatever else the file gives them; blank lines are skipped."""
    rows = []
    for number, line in enumerate(read_text(path, "--input").splitlines(), start=1):
        if line.strip():
            rows.append(read_row(line, f"{path}, line {number}"))
    if not rows:
        raise InputError(f"--input: {path} holds no prompt.", param="input")
    return rows


def read_row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}).", param="input") from None
    if isinstance(row, str):
        row = {"prompt": row}
    if not isinstance(row, dict) or not isinstance(row.get("prompt"), str | list) or not row["prompt"]:
        raise InputError(f'{where}: must be a text or an object with a "prompt".', param="input")
    return row
