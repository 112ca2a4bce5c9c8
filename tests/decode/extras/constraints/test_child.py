"""The child process as it is: what it reads, what it writes, and how it ends."""

import json
import signal
import subprocess
import sys

import pytest

from starr.decode.extras.constraints import child


def ask(expression, patterns=(), *, seconds=5.0, size=1 << 30, states=1000):
    """(return code, head, table) of one run."""
    asked = {"expression": expression, "patterns": patterns, "seconds": seconds, "bytes": size, "states": states}
    done = subprocess.run(
        [sys.executable, "-I", child.__file__], input=json.dumps(asked).encode(), capture_output=True, timeout=60
    )
    head, _, table = done.stdout.partition(b"\n")
    return done.returncode, json.loads(head) if head else None, table


def test_an_expression_gives_a_table():
    code, head, table = ask("ab|a")
    assert code == 0
    assert head["start"] == 0
    assert len(table) == head["states"] * 256 * 4
    assert len(head["final"]) == 2


def test_too_many_states_are_an_error_in_words():
    assert "states" in ask("a{50}", states=20)[1]["error"]


def test_a_pattern_that_quotes_is_an_error():
    assert "quote" in ask("x", ["[^a]"])[1]["error"]
    assert "error" not in ask("x", ["[a-z]+"])[1]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")
def test_time_is_bounded_by_the_system():
    code, head, _ = ask("(a|b)*a(a|b){22}", seconds=0.2)
    assert code == -signal.SIGPROF
    assert head is None


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of memory there")
def test_memory_is_bounded_by_the_system():
    code, head, _ = ask("a{1000000}", seconds=60, size=300 << 20)
    assert code != 0
    assert head is None
