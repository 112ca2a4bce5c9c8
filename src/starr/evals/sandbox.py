"""Run untrusted Python from a model, and say whether it ran to its end.

Every program gets a child process of its own with a fresh empty folder, an empty environment, no inherited file
handles, and limits on CPU, memory, processes, file size and wall time. Where the kernel allows ("namespaces") it also
has its own network (none), process, IPC and mount namespaces: it sees Python's standard library, read-only, and its
folder, nothing else, under a user id of its own or without capabilities. Elsewhere ("limits") Python's audit hooks
refuse files outside, sockets, new processes and foreign functions. ``isolation()`` tells which one holds, and results
carry it.

Not protected against: faults of the kernel or of the interpreter; in "limits" mode, code that breaks out of Python
itself; timing and other side channels; and a program that forges its own verdict, because tests and solution share one
process, as in every grader of this kind. It is a guard for benchmarks, not for a hostile tenant.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from starr.errors import WorkError

CHILD = Path(__file__).with_name("sandbox_child.py")
PROCESSES = 16
FILE_BYTES = 16 * 2**20
CPU_SECONDS = 10
GRACE = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended: passed means that its last line was reached without an exception."""

    passed: bool
    reason: str
    seconds: float


def run_code(program: str, *, timeout: float = 60.0, memory: int = 512 * 2**20) -> Outcome:
    """Run a program (standard library only) in ``memory`` bytes of address space.

    It has CPU_SECONDS of processor time, so that a busy machine fails nobody, and ``timeout`` seconds on the wall.
    """
    start = time.perf_counter()
    verdict = ask(program, isolation(), timeout, memory)
    return Outcome(verdict == "passed", verdict, time.perf_counter() - start)


@functools.cache
def isolation() -> str:
    """``namespaces`` where this kernel and user may make them, else ``limits``; found by trying once."""
    return "namespaces" if ask("", "namespaces", 30.0, 2**29) == "passed" else "limits"


def ask(program: str, mode: str, timeout: float, memory: int) -> str:
    """Start one child for one program and return its verdict: ``passed`` or why not."""
    with tempfile.TemporaryDirectory(prefix="starr-", ignore_cleanup_errors=True) as folder:
        request = {
            "program": program,
            "mode": mode,
            "folder": folder,
            "timeout": timeout,
            "memory": memory,
            "processes": PROCESSES,
            "file_bytes": FILE_BYTES,
            "cpu_seconds": CPU_SECONDS,
        }
        try:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={},
                close_fds=True,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkError(f"The code sandbox cannot start a child process: {error}.") from None
        try:
            answer, _ = child.communicate(json.dumps(request).encode(), timeout + GRACE)
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return answer.decode(errors="replace") or "the sandbox could not be set up"
