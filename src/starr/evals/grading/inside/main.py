"""Four processes: the watch, which keeps time and counts; the first process inside; the program's; and the judge's.

In namespaces the first process inside is process 1, so that its end ends every other. The program's process has two
handles, for calls and for its answers. The judge's alone reads the tests, which no other process ever holds, and
alone can write a verdict. Set-up that fails is told on the handle ``report``, which is closed before either runs.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starr.evals.grading.inside.hook import refuse_outside
from starr.evals.grading.inside.judge import SILENT, STOPPED, VERDICT_BYTES, judge
from starr.evals.grading.inside.landlock import restrict_files
from starr.evals.grading.inside.program import serve
from starr.evals.grading.inside.seccomp import restrict_calls
from starr.evals.grading.inside.walls import (
    Closed,
    allow_inspection,
    die_with_parent,
    drop_rights,
    enter_namespaces,
    private_root,
    set_limits,
)
from starr.evals.grading.inside.watch import on_disk, resident

Request = dict[str, Any]
GLANCE = 0.02  # seconds between two looks at memory and disk
LINGER = 1.0  # seconds that a program which stopped answering has to end
ENDS = {signal.SIGXCPU: "out of processor time or killed", signal.SIGKILL: "out of processor time or killed"}


def main(size: int) -> None:
    """Read a request of ``size`` bytes from standard input, where the tests follow; write the answer as JSON."""
    die_with_parent()
    text = b""
    while len(text) < size:
        text += os.read(0, size - len(text))  # no byte more: the tests are the judge's alone
    request: Request = json.loads(text)
    try:
        if request["mode"] == "namespaces":
            enter_namespaces()
        allow_inspection(allowed=False)
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
    """Start the processes inside; wait for the verdict, the clock, or too much memory or disk."""
    verdict, write_verdict = os.pipe()
    report, write_report = os.pipe()
    inner = os.fork()
    if inner == 0:
        inside(request, write_verdict, write_report)
    os.close(write_verdict)
    os.close(write_report)
    try:
        return observe(request, inner, verdict, report)
    finally:
        with suppress(ProcessLookupError):
            os.kill(inner, signal.SIGKILL)
        os.waitpid(inner, 0)


def observe(request: Request, inner: int, verdict: int, report: int) -> dict[str, Any]:
    """The answer: what the judge wrote on ``verdict``, what ``report`` says, or why we stop here."""
    walls: dict[str, list[str]] = {}
    status: dict[str, int] = {}
    clock = time.monotonic() + request["timeout"] + 60  # until both processes run
    while True:
        ready, _, _ = select.select([verdict, report] if "judge" not in status else [report], [], [], GLANCE)
        held = walls.get("program", [])
        if verdict in ready and (text := os.read(verdict, VERDICT_BYTES)):
            return {"verdict": text.decode(errors="replace"), "walls": held}
        for line in os.read(report, 65536).decode().splitlines() if report in ready else ():
            told: dict[str, Any] = json.loads(line)
            if "failed" in told:
                return told
            walls |= told.get("walls", {})
            status |= told.get("status", {})
            if "walls" in told and len(walls) == 2:
                clock = time.monotonic() + request["timeout"]
            if "judge" in status:
                clock = min(clock, time.monotonic() + LINGER)
        if "judge" in status and (status.keys() >= {"program"} or time.monotonic() > clock):
            return {"verdict": silence(status), "walls": held}
        if time.monotonic() > clock:
            return {"verdict": "timed out", "walls": held}
        if resident(inner) > request["memory"]:
            return {"verdict": f"MemoryError: more than {request['memory'] >> 20} MiB in all", "walls": held}
        if request["mode"] != "namespaces" and on_disk(request["folder"], inner) > request["disk"]:
            return {"verdict": f"OSError: more than {request['disk'] >> 20} MiB on disk", "walls": held}


def silence(status: dict[str, int]) -> str:
    """Why the judge ended without a verdict."""
    if os.WIFEXITED(status["judge"]) and os.WEXITSTATUS(status["judge"]) == STOPPED:
        return ending(status["program"]) if "program" in status else SILENT
    return f"the tests: {ending(status['judge'])}"


def ending(status: int) -> str:
    """How a process ended, in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return ENDS.get(number, f"killed by signal {number}")  # type: ignore[call-overload,no-any-return]
    return f"exited early with status {os.WEXITSTATUS(status)}"


def inside(request: Request, verdict: int, report: int) -> None:
    """The first process inside: build the root, start program and judge, tell how they ended; never returns."""
    try:
        die_with_parent()
        if request["mode"] == "namespaces":
            private_root(request["folder"], request["disk"])
        calls, write_call = os.pipe()
        answers, write_answer = os.pipe()
        tests = os.dup(0)
        roles = {
            start("program", request, report, serve, calls, write_answer): "program",
            start("judge", request, report, judge, write_call, answers, tests, verdict): "judge",
        }
        for handle in (calls, write_call, answers, write_answer, tests, verdict):
            os.close(handle)
        while roles:
            process, status = os.wait()
            if process in roles:
                tell(report, {"status": {roles.pop(process): status}})
    except BaseException as error:
        tell(report, failed(error if isinstance(error, Exception) else RuntimeError(repr(error))))
    os._exit(0)


def start(role: str, request: Request, report: int, work: Callable[..., None], *handles: int) -> int:
    """Start a process that has these handles only, stands behind all walls and does its work; its number."""
    if process := os.fork():
        return process
    leave = os._exit
    try:
        os.setsid()
        only_keep(*handles, report)
        walls = confine(request, program=role == "program")
        tell(report, {"walls": {role: walls}})
    except Exception as error:
        tell(report, failed(error))
        leave(1)
    try:
        os.close(report)
        work(*([request["sources"]] if role == "program" else []), *handles)
    finally:
        leave(1)  # whatever is raised, no line of the callers runs here


def tell(report: int, words: dict[str, Any]) -> None:
    """Write one line of JSON to the parent."""
    os.write(report, json.dumps(words).encode() + b"\n")


def confine(request: Request, *, program: bool) -> list[str]:
    """The last walls; which of the kernel's filters hold."""
    namespaces = request["mode"] == "namespaces"
    folder = os.getcwd() if namespaces else os.path.realpath(request["folder"])
    drop_rights(None if namespaces else folder, owner=program)
    allow_inspection(allowed=program)
    filters = request["filters"] and sys.platform == "linux"
    landlock = filters and restrict_files(folder)
    seccomp = filters and restrict_calls(namespaces=namespaces)
    set_limits(request)
    forget_modules()
    if not namespaces:
        refuse_outside(folder, sockets=seccomp)
    return [name for name, held in (("landlock", landlock), ("seccomp", seccomp)) if held]


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
        del sys.modules[name]
    sys.path[:] = [path for path in sys.path if path != package_root()]


def package_root() -> str:
    """Where our own package was imported from."""
    return os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
