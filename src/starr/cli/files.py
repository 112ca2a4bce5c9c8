"""Files a user names: checked before the work begins, written whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from starr.cli.report import note
from starr.errors import InputError


def check_out(path: Path | None, option: str) -> None:
    """Raise unless a file can be written at ``path``, so that no finished work is lost to a misspelt folder."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{option} must be a file, {path} is a folder.", param=option)
    if not path.parent.is_dir():
        raise InputError(f"{option}: there is no folder {path.parent}.", hint="Create it first.", param=option)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option}: {path} is not writable.", param=option)


def write(path: Path, text: str, quiet: bool = False) -> None:
    """Write a file whole or not at all, and say so."""
    from starr.model.files.output import write_text

    write_text(path, text)
    note(f"wrote {path}", quiet)


def read_text(path: Path, option: str) -> str:
    """The text of a file, or a one-line error that says why not."""
    try:
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{option}: cannot read {path}: {error.strerror}.", param=option) from None


def read_prompt(prompt: str | None) -> str:
    """The prompt itself, or standard input for ``-`` or where one is piped in; it must be UTF-8 and not blank."""
    if prompt is None:
        prompt = "" if sys.stdin.isatty() else "-"
    if prompt == "-":
        prompt = decode(sys.stdin.buffer.read(), "Standard input")
    text = decode(os.fsencode(prompt), "The prompt")
    if not text.strip():
        raise InputError("The prompt must not be empty.", hint="Give a PROMPT, or pipe one in.", param="prompt")
    return text


def decode(raw: bytes, what: str) -> str:
    """Bytes as UTF-8 text; anything else is an error that names ``what``."""
    try:
        return raw.decode("utf8")
    except UnicodeDecodeError as error:
        raise InputError(f"{what} is not UTF-8 (byte {error.start}).", hint="Convert it first.") from None
