"""Run untrusted Python from a model, and say whether it passes its tests.

The program's process only answers calls; the tests and the verdict live in a judge's process, which never runs it.
Every program gets processes of its own with a fresh empty folder, an empty environment, no inherited file
handles, and limits on CPU, memory, processes, files and wall time. Three layers stand around it:

- namespaces, where kernel and user allow them: no network, no other processes, and a file system of its own that holds
  Python's standard library, read-only, and the folder; under a user id of its own or without capabilities;
- Landlock and seccomp, where the kernel has them: the same rules for files once more, and no system call that a
  benchmark program does not need;
- Python's audit hooks, which alone are no more than an accident guard.

``isolation()`` tells which hold here, and results carry it. Without namespaces nothing runs unless ``permit_weak`` was
called (``--allow-weak-sandbox``), and never as root. See docs/security.md for what is not promised.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starr.errors import WorkError

ROOT = str(Path(__file__).parents[3])
START = (
    "import sys; sys.path.append(sys.argv[1]); from starr.evals.grading.inside.main import main; main(int(sys.argv[2]))"
)
PROCESSES = 16
FILE_BYTES = 16 * 2**20
DISK_BYTES = 64 * 2**20
CPU_SECONDS = 10
GRACE = 120.0
REFUSAL = errno.EPERM  # the kernel says that this user may not; anything else is a fault


@dataclass(frozen=True, slots=True)
class CodeRun:
    """How a program ended: passed means that the tests reached their last line without an exception."""

    passed: bool
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Isolation:
    """What isolates a program: ``namespaces`` or only ``limits``, and the kernel's filters."""

    mode: str
    filters: tuple[str, ...] = field(default=())

    @property
    def weak(self) -> bool:
        """Whether code runs without namespaces of its own."""
        return self.mode != "namespaces"

    def __str__(self) -> str:
        return " + ".join([self.mode, *self.filters]) if not self.weak or self.filters else "accident guard"


class SetupError(WorkError):
    """The sandbox could not be set up: the evaluation failed, not the program."""


class Permission:
    """Whether this process may run programs without namespaces; asked for once, by ``permit_weak``."""

    weak = False


def permit_weak() -> None:
    """Let programs run without namespaces from here on."""
    Permission.weak = True


def run_code(program: str, tests: str, *, setup: str = "", timeout: float = 60.0, memory: int = 512 * 2**20) -> CodeRun:
    """Run a program (standard library only) in ``memory`` bytes, its children included, and judge it by its tests.

    The tests are Python that asserts; they reach what the program defines as ``program.name``, and only plain values
    cross: numbers, texts, bytes, None, and lists, tuples, dicts and sets of them. ``setup`` is code that runs with the
    program, after it. Each side has CPU_SECONDS of processor time, so that a busy machine fails nobody, and both have
    ``timeout`` seconds on the wall.
    """
    mode = check_isolation().mode
    start = time.perf_counter()
    verdict = ask([program, setup], tests, mode, timeout, memory)
    return CodeRun(verdict == "passed", verdict, time.perf_counter() - start)


@functools.cache
def check_isolation() -> Isolation:
    """What holds here; refused or warned about, once, where it is weak."""
    found = isolation()
    if found.weak and not Permission.weak:
        raise SetupError(
            f"This kernel or user cannot create namespaces; model code would run with {found} only.",
            hint="Allow it with --allow-weak-sandbox, or run as a user who may create them.",
        )
    if found.weak:
        warnings.warn(f"Model code runs without namespaces: {found}. See docs/security.md.", stacklevel=3)
    return found


@functools.cache
def isolation() -> Isolation:
    """Found by trying once: namespaces, or limits where the kernel does not let this user create them."""
    answer = converse([], "", "namespaces", 60.0, 2**29)
    mode = "namespaces"
    if answer.get("errno") == REFUSAL or sys.platform != "linux":
        mode = "limits"
        answer = converse([], "", mode, 60.0, 2**29)
    if answer.get("verdict") != "passed":
        raise cannot(answer)
    return Isolation(mode, tuple(answer["walls"]))


def ask(sources: list[str], tests: str, mode: str, timeout: float, memory: int, **more: Any) -> str:
    """Start one child for one program and return its verdict: ``passed`` or why not."""
    answer = converse(sources, tests, mode, timeout, memory, **more)
    if "verdict" not in answer:
        raise cannot(answer)
    return str(answer["verdict"])


def cannot(answer: dict[str, Any]) -> SetupError:
    """The error that says why the sandbox could not be set up."""
    if answer.get("closed"):
        hint = "Run as an ordinary user, or with a Python that everybody may read."
        return SetupError(f"The rights of root cannot be dropped: {answer['failed']}.", hint=hint)
    return SetupError(f"The code sandbox cannot be set up: {answer.get('failed') or answer.get('verdict')}.")


def converse(
    sources: list[str],
    tests: str,
    mode: str,
    timeout: float,
    memory: int,
    *,
    filters: bool = True,
    python: str = sys.executable,
) -> dict[str, Any]:
    """One child's answer: ``verdict`` and ``walls``, or ``failed`` and the ``errno``."""
    with tempfile.TemporaryDirectory(prefix="starr-", ignore_cleanup_errors=True) as folder:
        request = {
            "sources": sources,
            "mode": mode,
            "filters": filters,
            "folder": folder,
            "timeout": timeout,
            "memory": memory,
            "processes": PROCESSES,
            "file_bytes": FILE_BYTES,
            "disk": DISK_BYTES,
            "cpu_seconds": CPU_SECONDS,
        }
        text = json.dumps(request).encode()
        try:
            child = subprocess.Popen(
                [python, "-I", "-S", "-c", START, ROOT, str(len(text))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env={},
                close_fds=True,
                start_new_session=True,
            )
        except OSError as error:
            return {"failed": f"no child process: {error}"}
        try:
            answer, trouble = child.communicate(text + tests.encode(errors="replace"), timeout + GRACE)
        except subprocess.TimeoutExpired:
            return {"failed": f"no answer within {timeout + GRACE:g} seconds"}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    if not answer:
        return {"failed": trouble.decode(errors="replace").strip().rpartition("\n")[2] or "no answer"}
    found: dict[str, Any] = json.loads(answer)
    return found
