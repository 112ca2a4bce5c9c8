"""The entry point and the one error boundary: a line on standard error and an exit code, never a traceback unasked.

Exit codes: 0 done, 1 the work failed, 2 wrong usage or a full disk (what the user can mend), 130 interrupted.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import itertools
import os
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import typer

from starr.cli.app import app
from starr.cli.ray import with_address
from starr.errors import StarrError
from starr.options import FLAG, ours

CLEAR = 0.8  # how alike two flags must be


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = with_address(list(sys.argv[1:] if argv is None else argv))
    debug = "--debug" in arguments
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.showwarning = show_warning(debug, "--quiet" in arguments)
        try:
            code = app(arguments, prog_name="starr", standalone_mode=False)
            sys.stdout.flush()
        except BaseException as error:
            if debug:
                traceback.print_exc()
            code = report(error, arguments)
    return code if isinstance(code, int) else 0


def report(error: BaseException, arguments: list[str]) -> int:
    """Print one line about the error, if it needs one, and give the exit code."""
    line, code = explain(error, arguments)
    if isinstance(error, OSError | SystemExit):
        silence_stdout()
    if line:
        print(f"starr: {' '.join(line.split())}", file=sys.stderr)
    return code


def explain(error: BaseException, arguments: list[str]) -> tuple[str, int]:
    """The line to print ("" for none) and the exit code."""
    match error:
        case StarrError():
            return str(error), error.exit_code
        case typer.TyperException():
            return usage(error, arguments), 2
        case KeyboardInterrupt() | typer.Abort() | RuntimeError(__cause__=KeyboardInterrupt()):
            return "", 130  # while torch is imported, Python wraps the interruption in a RuntimeError
        case BrokenPipeError() | SystemExit(__context__=BrokenPipeError()):  # `starr … | head` has read what it wanted
            return "", 0
        case SystemExit():
            return "", 1
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            where = f" writing {error.filename}" if error.filename else ""
            return f"The disk is full{where}. Free space and run again.", 2
        case OSError(filename=str() as name):
            return f"{name}: {error.strerror}.", 1
        case MemoryError():
            return "Out of memory. Lower --max-tokens or --batch-size, or use a smaller model.", 1
    return f"Internal error: {type(error).__name__}: {error}. Run again with --debug for the traceback.", 1


def usage(error: Any, arguments: list[str]) -> str:
    """Typer's usage error in one line: the nearest option where one was misspelt, the value where one was refused."""
    unknown = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption" and (hint := hint_flag(error, arguments)):
        return f"No such option {unknown!r}. {hint}"
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())
        return ""
    line = plain(f"No such option {unknown!r}" if unknown else error.format_message().rstrip("."))
    value = refused(error, arguments)
    if value is not None and repr(value) not in line:
        line += f", got {value!r}"
    command = error.ctx.command_path if getattr(error, "ctx", None) else "starr"
    return f"{line}{'' if line.endswith('?') else '.'} See `{command} --help`."


def hint_flag(error: Any, arguments: list[str]) -> str:
    """What to write in place of a flag that does not exist; "" where that is not clear.

    It is our name for a flag of another tool, an option of a strategy or cache, or a flag that was misspelt.
    """
    unknown = str(error.option_name)
    if known := ours(unknown, FLAG):
        return known
    flags = [flag for param in error.ctx.command.params for flag in param.opts] if error.ctx else []
    if near := difflib.get_close_matches(unknown, flags, n=1, cutoff=CLEAR):
        return f"Did you mean {near[0]!r}?"
    if "--strategy" not in flags:
        return ""
    from starr.decode.catalogue import find_option

    given = {flag: value_of(flag, arguments) for flag in (unknown, "--strategy", "--cache")}
    name = unknown.lstrip("-").replace("-", "_")
    found = find_option(name, given[unknown] or "X", given["--strategy"], given["--cache"])
    return f"It is an option of a {found.kind}: --{found.kind} {found.form}." if found else ""


def value_of(flag: str, arguments: list[str]) -> str | None:
    """What the user wrote last for a flag."""
    found = None
    for argument, following in itertools.zip_longest(arguments, arguments[1:]):
        if argument.startswith(f"{flag}="):
            found = argument.partition("=")[2]
        elif argument == flag and following is not None:
            found = following
    return found


def plain(line: str) -> str:
    """Typer's sentence in words that say what to do."""
    if more := re.fullmatch(r"Got unexpected extra argument\(s\) \((.*)\)", line, re.DOTALL):
        return f"Unexpected argument {more[1]!r}: put quotes around a text of several words"
    if number := re.match(r"Invalid value for '([^']+)': Input should be a valid (integer|number)", line):
        return f"{number[1]} must be {'a whole number' if number[2] == 'integer' else 'a number'}"
    return line


def refused(error: Any, arguments: list[str]) -> str | None:
    """What the user wrote last for the option that was refused; None where the error is about no option."""
    values = (value_of(flag, arguments) for flag in getattr(getattr(error, "param", None), "opts", ()))
    return next((value for value in values if value is not None), None)


def show_warning(debug: bool, quiet: bool) -> Any:
    """A ``warnings.showwarning`` that prints the project's own warnings as one line and hides the libraries' others."""

    def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
        if debug or (category is UserWarning and not quiet):
            print(f"starr: warning: {message}", file=sys.stderr)

    return show


def silence_stdout() -> None:
    """Point a broken standard output at nothing, so that the interpreter's last flush stays quiet."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
