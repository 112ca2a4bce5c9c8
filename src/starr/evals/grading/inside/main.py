"""Three processes: the watch, which keeps time and counts; the first process inside; and the program's.

In namespaces the first process inside is process 1, so that its end ends every other. The program's process has one
handle, for its verdict. Set-up that fails is told on the handle ``report``, which is closed before the program runs.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from starr.evals.grading.inside.hook import refuse_inspection, refuse_outside
from starr.evals.grading.inside.landlock import restrict_files
from starr.evals.grading.inside.seccomp import restrict_calls
from starr.evals.grading.inside.verdict import SECRET_BYTES, VERDICT_BYTES, run, witness
from starr.evals.grading.inside.walls import (
    Closed,
    die_with_parent,
    drop_rights,
    enter_namespaces,
    private_root,
    set_limits,
)
from starr.evals.grading.inside.watch import on_disk, resident

Request = dict[str, Any]
GLANCE = 0.02  # seconds between two looks at memory and disk
ENDS = {signal.SIGXCPU: "out of processor time or killed", signal.SIGKILL: "out of processor time or killed"}


def main() -> None:
    """Read a request from standard input, run its program and write the answer, a JSON object, to standard output."""
    request: Request = json.loads(sys.stdin.buffer.read())
    die_with_parent()
    try:
        if request["mode"] == "namespaces":
            enter_namespaces()
    except OSError as error:
        answer = failed(error)
    else:
        answer = watch(request)
    os.write(1, json.dumps(answer).encode())


def failed(error: Exception) -> dict[str, Any]:
    """An answer that says why the sandbox could not be set up; ``errno`` is 0 where the kernel was not the reason."""
    number = error.errno if isinstance(error, OSError) else 0
    return {"failed": f"{type(error).__name__}: {error}", "errno": number, "closed": isinstance(error, Closed)}


def watch(request: Request) -> dict[str, Any]:
    """Start the process inside; wait for its end, the clock, or too much memory or disk."""
    verdict, write_verdict = os.pipe()
    report, write_report = os.pipe()
    secret, write_secret = os.pipe()
    inner = os.fork()
    if inner == 0:
        inside(request, write_verdict, write_report, secret)
    for handle in (write_verdict, write_report, secret):
        os.close(handle)
    key = os.urandom(SECRET_BYTES)  # made after the fork: no frame and no page of the program's ever held it
    with suppress(BrokenPipeError):
        os.write(write_secret, key)
    try:
        return observe(request, inner, verdict, report, key)
    finally:
        with suppress(ProcessLookupError):
            os.kill(inner, signal.SIGKILL)
        os.waitpid(inner, 0)


def observe(request: Request, inner: int, verdict: int, report: int, key: bytes) -> dict[str, Any]:
    """The answer: what was said with the key on ``verdict``, or on ``report``, or why we stop here."""
    walls: list[str] = []
    open_handles, clock = [verdict, report], time.monotonic() + request["timeout"] + 60  # until the program starts
    while True:
        ready, _, _ = select.select(open_handles, [], [], GLANCE)
        if report in ready:
            for line in os.read(report, 65536).decode().splitlines():
                told: dict[str, Any] = json.loads(line)
                if "failed" in told:
                    return told
                if "status" in told:
                    return {"verdict": said(verdict, key) or ending(told["status"]), "walls": walls}
                walls, clock = told["walls"], time.monotonic() + request["timeout"]
        elif verdict in ready:
            if text := said(verdict, key):
                return {"verdict": text, "walls": walls}
            open_handles = [report]  # closed without a word: its end is reported
        if time.monotonic() > clock:
            return {"verdict": "timed out", "walls": walls}
        if resident(inner) > request["memory"]:
            return {"verdict": f"MemoryError: more than {request['memory'] >> 20} MiB in all", "walls": walls}
        if request["mode"] != "namespaces" and on_disk(request["folder"], inner) > request["disk"]:
            return {"verdict": f"OSError: more than {request['disk'] >> 20} MiB on disk", "walls": walls}


def said(verdict: int, key: bytes) -> str:
    """The verdict on the handle; "" if there is none. Without the key it is the program that wrote it."""
    if not select.select([verdict], [], [], 0)[0]:
        return ""
    text = os.read(verdict, SECRET_BYTES + VERDICT_BYTES)
    if not text.startswith(key):
        return "wrote to the verdict's handle" if text else ""
    return text[len(key) :].decode(errors="replace")


def ending(status: int) -> str:
    """How a process ended, in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return ENDS.get(number, f"killed by signal {number}")  # type: ignore[call-overload,no-any-return]
    return f"exited early with status {os.WEXITSTATUS(status)}"


def inside(request: Request, verdict: int, report: int, secret: int) -> None:
    """The first process inside: build the root, start the program's process, tell how it ended; never returns."""
    try:
        die_with_parent()
        if request["mode"] == "namespaces":
            private_root(request["folder"], request["disk"])
        program = os.fork()
        if program == 0:
            confine(request, verdict, report, secret)
        os.close(verdict)
        while (ended := os.wait())[0] != program:
            pass
        tell(report, {"status": ended[1]})
    except BaseException as error:
        tell(report, failed(error if isinstance(error, Exception) else RuntimeError(repr(error))))
    os._exit(0)


def tell(report: int, words: dict[str, Any]) -> None:
    """Write one line of JSON to the parent."""
    os.write(report, json.dumps(words).encode() + b"\n")


def confine(request: Request, verdict: int, report: int, secret: int) -> None:
    """In the program's process: the last walls, then the program; never returns."""
    namespaces = request["mode"] == "namespaces"
    folder = os.getcwd() if namespaces else os.path.realpath(request["folder"])
    try:
        only_keep(verdict, report, secret)
        drop_rights(None if namespaces else folder)
        filters = request["filters"] and sys.platform == "linux"
        landlock = filters and restrict_files(folder)
        seccomp = filters and restrict_calls(namespaces=namespaces)
        calls, end = witness(verdict, secret)
        set_limits(request)
        forget_modules()
        refuse_inspection()
        if not namespaces:
            refuse_outside(folder, sockets=seccomp)
        tell(report, {"walls": [name for name, held in (("landlock", landlock), ("seccomp", seccomp)) if held]})
    except BaseException as error:
        tell(report, failed(error if isinstance(error, Exception) else RuntimeError(repr(error))))
        os._exit(1)
    os.close(report)
    run(request["program"], calls, end)


def only_keep(*handles: int) -> None:
    """Standard streams to nowhere; every other handle closed."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    edges = sorted({2, *handles, 4096})
    for low, high in itertools.pairwise(edges):
        os.closerange(low + 1, high)


def forget_modules() -> None:
    """What the walls were built with is not for the program: our own modules, and foreign functions."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("starr", "ctypes", "_ctypes")]:
        module = sys.modules.pop(name)
        if "ctypes" in name:
            vars(module).clear()
    sys.path[:] = [path for path in sys.path if path != package_root()]


def package_root() -> str:
    """Where our own package was imported from."""
    return os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
