"""``starr run --input``: a file of prompts, in this process or on many workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starr.cli.files import read_text
from starr.cli.known import remark_all, remark_holes
from starr.cli.report import dump, note
from starr.cli.run_settings import begin, cut_tail, describe_settings
from starr.errors import InputError, WorkError, counted
from starr.named import check_range

if TYPE_CHECKING:
    from starr.cli.run import RunOptions
    from starr.cluster.start import Size

CHUNK = 4  # batches decoded between two writes
NOTES = 20  # lines about the progress of a whole file


def run_file(options: RunOptions, path: Path) -> None:
    """Decode a file of prompts; results are written as they come, so that an interruption keeps those that are done."""
    for flag, given in (("--live", options.live), ("--trace", options.trace), ("--html", options.html)):
        if given:
            raise InputError(f"{flag} shows one run.", hint="Give it a PROMPT instead of --input.", param=flag)
    check_range("--batch-size", options.batch_size, 1)
    if options.resume and options.out is None:
        raise InputError("--resume needs --out, the file to continue.", param="resume")
    rows, size = read_prompts(path), options.size()
    done = 0 if options.out is None else begin(options.out, describe_settings(options, rows), options.resume)
    prompts = [row["prompt"] for row in rows[done:]]
    results = decode_here(options, prompts) if size is None else decode_on_workers(options, size, prompts)
    try:
        failed = write_all(options, rows, results, done)
    except KeyboardInterrupt:
        if options.out is not None:
            written = f"{cut_tail(options.out)} of {counted(len(rows), 'prompt')}"
            note(f"{written} written to {options.out}; --resume continues")
        raise
    if options.out is not None:
        note(f"wrote {options.out}", options.quiet)
    if failed:
        raise WorkError(f"{counted(len(failed), 'prompt')} failed: {'; '.join(failed[:3])}")


def write_all(
    options: RunOptions, rows: Sequence[dict[str, Any]], results: Iterator[dict[str, Any]], done: int
) -> list[str]:
    """Write each result as it comes, after the ``done`` first ones; gives what failed."""
    failed = []
    mode = "a" if done else "w"
    with open(options.out, mode, encoding="utf8") if options.out else nullcontext(sys.stdout) as stream:
        for place, result in enumerate(results, start=done):
            extra = {key: value for key, value in rows[place].items() if key != "prompt"}
            print(dump(extra | result), file=stream, flush=True)
            if "error" in result:
                failed.append(f"line {place + 1}: {result['error']}")
            if (place + 1) * NOTES // len(rows) > place * NOTES // len(rows):
                note(f"{place + 1} of {counted(len(rows), 'prompt')}", options.quiet)
    return failed


def decode_here(options: RunOptions, prompts: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Results in order, a few batches at a time."""
    import starr

    arguments = options.parse().keywords() | {"batch_size": options.batch_size}
    model, step = options.load(), CHUNK * options.batch_size
    remark_all(model, prompts, options.quiet)
    remark_holes(prompts, options.infill, options.quiet)
    for start in range(0, len(prompts), step):
        for generation in starr.generate(model, prompts[start : start + step], **arguments):
            yield generation.to_dict()


def decode_on_workers(options: RunOptions, size: Size, prompts: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The same from Ray's workers; a prompt that fails gives its error."""
    from starr.cluster.jobs import generate_on
    from starr.cluster.worker import Failure, ModelSource
    from starr.model.device import read_dtype

    loading = ModelSource(options.model, options.device, read_dtype(options.dtype))
    for result in generate_on(size, loading, prompts, options.batch_size, options.parse()):
        yield {"error": result.message} if isinstance(result, Failure) else result


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
    """One line of ``--input``: a text, or an object with a prompt."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}).", param="input") from None
    if isinstance(row, str):
        row = {"prompt": row}
    if not isinstance(row, dict) or not isinstance(row.get("prompt"), str | list) or not row["prompt"]:
        raise InputError(f'{where}: must be a text or an object with a "prompt".', param="input")
    return row
