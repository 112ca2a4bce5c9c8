"""Run the tests, call the program over a pipe, and decide.

This process never runs the program. The tests reach its functions as ``program.name``; arguments and values cross as
plain data. An answer that is malformed, too long, missing or not asked for fails the program for good, even
if the tests catch every exception.
"""

from __future__ import annotations

import builtins
import json
import os
import select
from typing import Any, NoReturn

from starr.evals.grading.inside.plain import END, decode, encode

ANSWER_BYTES = 1 << 24
VERDICT_BYTES = 400
SILENT = "the program stopped answering"
STOPPED = 3  # this process's status when the program's process is silent: how that one ended is the verdict
HELD_BACK = (StopIteration, StopAsyncIteration)  # they would end a loop of the tests without a word


class Fault(BaseException):
    """The program broke the rules of the pipe."""


class Raised(Exception):
    """The program raised something that is no ordinary built-in exception."""


class Pipe:
    """Calls to the program's process, and its answers. Once at fault, every later call fails."""

    def __init__(self, calls: int, answers: int) -> None:
        self.calls, self.answers, self.fault = calls, answers, ""

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """What the program's function gives or raises."""
        line = json.dumps([name, encode(list(args), name_of), encode(kwargs, name_of)]).encode() + b"\n"
        if self.fault:
            self.fail(self.fault)
        if select.select([self.answers], [], [], 0)[0]:
            self.fail("an answer that nobody asked for" if os.read(self.answers, 1) else SILENT)
        try:
            while line:
                line = line[os.write(self.calls, line) :]
        except BrokenPipeError:
            self.fail(SILENT)
        return self.receive()

    def receive(self) -> Any:
        """The value of one answer, or the exception that it names."""
        text = self.read_line()
        try:
            ((kind, inner),) = json.loads(text).items()
            if kind == "value":
                return decode(inner, lambda name: Foreign(str(name), self))
            name, words = {"raised": inner}[kind]
            error = rebuild(str(name), str(words))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError):
            self.fail("a malformed answer")
        raise error

    def read_line(self) -> bytes:
        """One line, and nothing after it."""
        text = bytearray()
        while not text.endswith(b"\n"):
            part = os.read(self.answers, 1 << 16)
            if not part:
                self.fail(SILENT)
            if b"\n" in part[:-1]:
                self.fail("an answer that nobody asked for")
            text += part
            if len(text) > ANSWER_BYTES:
                self.fail("an answer that is too long")
        return bytes(text)

    def fail(self, fault: str) -> NoReturn:
        """Remember the fault."""
        self.fault = fault
        raise Fault(fault)


class Foreign:
    """Something of the program that stays there: the tests may call it and pass it on, and learn nothing of it."""

    def __init__(self, name: str, pipe: Pipe) -> None:
        self.name, self.pipe = name, pipe

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.pipe.call(self.name, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"{self.name} is no plain value and equals nothing")

    def __bool__(self) -> bool:
        raise TypeError(f"{self.name} is no plain value and is neither true nor false")

    __hash__ = None  # type: ignore[assignment]


class Program:
    """What the tests see of the program: each of its global names."""

    def __init__(self, pipe: Pipe) -> None:
        self.__pipe = pipe

    def __getattr__(self, name: str) -> Foreign:
        return Foreign(name, self.__pipe)


def name_of(value: Any) -> str:
    """The name by which the program knows this argument."""
    if isinstance(value, Foreign):
        return value.name
    if isinstance(value, type) and value.__module__ == "builtins":
        return value.__name__
    raise TypeError(f"a {type(value).__name__} cannot cross to the program")


def rebuild(name: str, words: str) -> Exception:
    """The built-in exception of this name where a test may meet one; else Raised."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, HELD_BACK):
        try:
            return kind(words)
        except TypeError:  # one that wants other arguments
            pass
    return Raised(f"{name}: {words}")


def judge(calls: int, answers: int, tests: int, verdict: int) -> None:
    """Read the tests from their handle, run them and write the verdict; never returns."""
    pipe = Pipe(calls, answers)
    try:
        with open(tests, encoding="utf8") as file:
            code = compile(file.read(), "<tests>", "exec", dont_inherit=True)
        pipe.receive()  # the program ran to its end
        exec(code, {"__name__": "tests", "program": Program(pipe)})
        pipe.call(END)  # the program is still there, and said nothing but what it was asked
        word = "passed"
    except Raised as error:
        word = str(error)
    except BaseException as error:
        word = f"{type(error).__name__}: {error!s:.300}".strip()
    if pipe.fault == SILENT:
        os._exit(STOPPED)
    os.write(verdict, (pipe.fault or word).encode(errors="replace")[:VERDICT_BYTES])
    os._exit(0)
