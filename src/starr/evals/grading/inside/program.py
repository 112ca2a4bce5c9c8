"""Run the program and answer calls of its functions; nothing here decides anything.

Whatever the program does to this process, it can only change its own answers. The tests and the values they expect
are in another process.
"""

from __future__ import annotations

import builtins
import json
import os
from collections import ChainMap
from collections.abc import Callable
from functools import partial
from typing import Any

from starr.evals.grading.inside.plain import END, decode, encode


def serve(sources: list[str], calls: int, answers: int) -> None:
    """Execute each source by itself in one scope, then answer calls until the judge has no more; never returns."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    kept: dict[str, Any] = {END: lambda: None}
    process, getpid, leave = os.getpid(), os.getpid, os._exit

    def answer(act: Callable[[], Any]) -> None:
        line = attempt(act, kept)
        if getpid() != process:  # a child of the program has no say
            leave(0)
        with open(answers, "wb", closefd=False) as file:
            file.write(line)

    answer(partial(execute, sources, scope))
    find = ChainMap(kept, scope, vars(builtins)).__getitem__
    with open(calls, "rb") as lines:
        for line in lines:
            answer(partial(call, line, find))
    leave(0)


def execute(sources: list[str], scope: dict[str, Any]) -> None:
    """Compile each source by itself, so that none can swallow a line of the next, and run it."""
    for source in sources:
        exec(compile(source, "<program>", "exec", dont_inherit=True), scope)


def call(line: bytes, find: Callable[[str], Any]) -> Any:
    """Call what the judge names with what it sends."""
    name, args, kwargs = json.loads(line)
    return find(name)(*decode(args, find), **decode(kwargs, find))


def attempt(act: Callable[[], Any], kept: dict[str, Any]) -> bytes:
    """One line: the value that comes of it, or the name and the words of what was raised."""

    def keep(value: Any) -> str:
        name = f"{type(value).__name__} {len(kept)}"
        kept[name] = value
        return name

    try:
        line = json.dumps({"value": encode(act(), keep)})
    except BaseException as error:  # SystemExit and KeyboardInterrupt are failures too
        line = json.dumps({"raised": [type(error).__name__, f"{error!s:.300}"]})
    return line.encode() + b"\n"
