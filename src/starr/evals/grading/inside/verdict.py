"""Run the program, and let a thread that it cannot see say how it ended.

A verdict is believed only with a secret, which lives in the frame of a second thread. The program runs in the first
one, whose frames hold nothing of use. That the program came to its end is told by a list that only the running call
holds: ``list.extend`` of a ``map`` over ``exec`` adds its one element when ``exec`` returns, and by no other way.
What remains is memory itself: foreign functions and faults of the interpreter.
"""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable
from typing import Any

VERDICT_BYTES = 400
SECRET_BYTES = 16


def witness(pipe: int, secret: int) -> tuple[list[Any], Callable[[str], None]]:
    """Start the thread that reports; gives a list with the one call that counts, and how to say that all is over.

    ``secret`` is a handle to read it from, so that no frame below this one ever held it.
    """
    done: list[None] = []
    words: list[str] = []
    over, never = _thread.allocate_lock(), _thread.allocate_lock()
    over.acquire()
    never.acquire()
    process, getpid, leave = os.getpid(), os.getpid, os._exit

    def report(wait: Callable[[], bool], write: Callable[[int, bytes], int], key: bytes) -> None:
        wait()
        verdict = "passed" if done == [None] and not words else (words or ["exited without a verdict"])[0]
        write(pipe, key + verdict.encode(errors="replace")[:VERDICT_BYTES])
        leave(0)

    def end(word: str) -> None:
        if getpid() != process:  # a child of the program has no witness
            leave(0)
        if word:
            words.append(word)
        over.release()
        never.acquire()

    _thread.start_new_thread(report, (over.acquire, os.write, os.read(secret, SECRET_BYTES)))
    os.close(secret)
    return [done.extend], end


def run(program: str, calls: list[Any], end: Callable[[str], None]) -> None:
    """Execute the program in this thread; never returns."""
    word = ""
    try:
        code = compile(program, "<program>", "exec")
        calls.pop()(map(exec, [code], [{"__name__": "__main__"}]))
    except BaseException as error:  # SystemExit and KeyboardInterrupt are failures too
        word = f"{type(error).__name__}: {error!s:.300}".strip()
    end(word)
