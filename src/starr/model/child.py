"""A child process with limits, for work that a model's files can make slow: it answers in lines of JSON.

A child that takes too long or too much memory is ended: the caller gets an error of one line, and the next question
starts a new child.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any, cast

from starr.errors import InputError, LoadError

SECONDS = 10.0  # for one answer
START_SECONDS = 60.0  # for the child's own start, on a busy machine

Answerer = Callable[[dict[str, Any]], dict[str, Any]]


class LimitedChild:
    """A process ``python -m module``, which gets ``first`` whenever it starts; ``name`` is for messages."""

    def __init__(self, module: str, first: Mapping[str, Any], name: str) -> None:
        self.module, self.first, self.name = module, first, name
        self.lock = threading.Lock()
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def ask(self, question: Mapping[str, Any], param: str) -> dict[str, Any]:
        """Return the child's answer; InputError about ``param`` if it has none."""
        with self.lock:
            if self.process is None:
                self.start()
            answer = self.exchange(question, SECONDS)
        if "error" in answer:
            raise InputError(answer["error"], param=param)
        return answer

    def start(self) -> None:
        """Start the process and send the first question; LoadError if the child cannot use it."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, encoding="utf8", errors="surrogatepass", env=child_environment(),
        )  # fmt: skip
        weakref.finalize(self, self.process.kill)
        started = self.exchange({}, START_SECONDS)
        answer = started if self.process is None else self.exchange(self.first, SECONDS)
        if "error" in answer:
            raise LoadError(answer["error"])

    def exchange(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a question and return the answer; without an answer in time, end the process and return an error."""
        process = cast("subprocess.Popen[str]", self.process)
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        line = ""
        with suppress(OSError, ValueError):
            stdin, stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
            stdin.write(json.dumps(question) + "\n")
            stdin.flush()
            line = stdout.readline()
        timer.cancel()
        if line:
            return cast("dict[str, Any]", json.loads(line))
        self.process = None
        process.kill()
        process.wait()
        return {"error": f"{self.name} took more than {seconds:.0f} seconds or too much memory."}


def child_environment() -> dict[str, str]:
    """Return the environment of a child that imports what this process imports."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}


def limit_memory(size: int) -> None:
    """Limit the memory of this process to so many bytes, where the system can."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def answer_all(begin: Callable[[dict[str, Any]], Answerer], name: str, memory: int) -> None:
    """Answer questions, in the child. ``begin`` takes the first one and returns a function for all others.

    An empty question only tests whether the child has started.
    """
    limit_memory(memory)
    answerer: Answerer | None = None
    answer: dict[str, Any]
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if not question:
                answer = {}
            elif answerer is None:
                answerer, answer = begin(question), {}
            else:
                answer = answerer(question)
        except (LoadError, InputError) as error:
            answer = {"error": str(error)}
        except (MemoryError, RecursionError, OverflowError) as error:
            answer = {"error": f"{name} cannot be used: {type(error).__name__}."}
        print(json.dumps(answer), flush=True)
