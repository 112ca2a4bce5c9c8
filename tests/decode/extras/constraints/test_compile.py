"""Compiling within bounds, once, and keeping what was compiled."""

import os
import threading
import time

import pytest

from starr.decode.extras.constraints.compile import Constraint, ConstraintStore, compile_constraint
from starr.decode.extras.constraints.expression import parse_constraint
from starr.decode.extras.constraints.walks import MASK
from starr.errors import InputError
from tests.decode.extras.constraints.toy import BYTES, accepts, made

HOSTILE = [
    "(a|b)*a(a|b){20}",
    "a{1000000}",
    "((a{1,100}){1,100}){1,100}",
    "(?:(?:(?:.{0,20}){0,20}){0,20})x",
    ".{5000}",
    r"\w{200}",
    "(a?){90}(b?){90}(a|b?){90}" * 20,
    "".join(chr(97 + (i * i // 7 + i) % 26) for i in range(11_000)),
    "[a-z0-9]{0,11000}",
]


def processor_time() -> float:
    """Seconds of this process and of the children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: pattern[:20])
def test_a_hostile_expression_is_refused_with_little_work(pattern):
    """Processor time, here and in the child, is below a second; so a busy machine changes nothing."""
    before = processor_time()
    with pytest.raises(InputError, match=r"too long|states|too large"):
        made(regex=pattern)
    assert processor_time() - before < 1.0


def test_a_long_alternation_is_no_burden():
    automaton = made(regex="|".join(f"w{i}" for i in range(10_000)))
    assert automaton.states < 20
    assert accepts(automaton, "w9999")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a(", "cannot be read"),
        ("[z-a]", "cannot be read"),
        ("*a", "cannot be read"),
        ("(?<n", "cannot be read"),
        ("[a&&b]", "no text that it allows"),
        ("a\ud800", "half a character"),
    ],
)
def test_what_cannot_be_used_is_said(pattern, words):
    with pytest.raises(InputError, match=words) as caught:
        made(regex=pattern)
    assert "Shorten" not in str(caught.value)
    assert "\U0010ffff" not in str(caught.value)


def test_one_compile_serves_all_who_wait_for_it(monkeypatch):
    calls = []

    def slow(asked, spelling):
        calls.append(asked)
        time.sleep(0.1)
        return compile_constraint(asked, spelling)

    monkeypatch.setattr("starr.decode.extras.constraints.compile.compile_constraint", slow)
    kept, found = ConstraintStore(max_constraints=1), []
    asked = parse_constraint(regex="ab")
    threads = [threading.Thread(target=lambda: found.append(kept.get(asked, BYTES))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert len(set(map(id, found))) == 1
    kept.get(parse_constraint(regex="other"), BYTES)
    kept.get(parse_constraint(regex="ab"), BYTES)
    assert len(calls) == 3, "one is kept, the oldest goes"


def test_a_refusal_is_remembered_and_said_again(monkeypatch):
    kept = ConstraintStore(max_refusals=2)
    said = [refusal_of(kept, "a(")]
    monkeypatch.setattr("starr.decode.extras.constraints.compile.compile_constraint", None)  # is not called again
    said += [refusal_of(kept, "a(") for _ in range(2)]
    assert len(set(said)) == 1
    assert said[0][1:] == ("regex", 400)
    monkeypatch.undo()
    for other in ("b(", "c("):
        refusal_of(kept, other)
    assert [asked.text for asked, _ in kept.refusals] == ["b(", "c("], "the oldest is forgotten"


def refusal_of(kept, pattern):
    with pytest.raises(InputError) as caught:
        kept.get(parse_constraint(regex=pattern), BYTES)
    return str(caught.value), caught.value.param, caught.value.status


def test_what_a_busy_machine_or_a_missing_library_refuses_is_not_remembered(monkeypatch):
    module, kept, asked = "starr.decode.extras.constraints.compile", ConstraintStore(), parse_constraint(regex="ab")
    monkeypatch.setattr(f"{module}.WALL_SECONDS", 1e-6)
    assert "too long" in refusal_of(kept, "ab")[0]
    monkeypatch.undo()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install" in refusal_of(kept, "ab")[0]
    monkeypatch.undo()
    assert kept.get(asked, BYTES).automaton.shortest == 2


def test_a_long_text_is_compiled_with_little_work():
    before = processor_time()
    assert made(regex="ab" * 1450).shortest == 2900
    assert processor_time() - before < 1.0


def test_what_walks_remember_counts_for_what_is_kept():
    kept = ConstraintStore(max_bytes=100_000)
    first = kept.get(parse_constraint(regex="(a|b){3}"), BYTES)
    kept.get(parse_constraint(regex="a"), BYTES)
    assert len(kept.constraints) == 2
    for length in range(1, 300):
        first.walk([MASK] * length).classes_at(0)
        first.reach.moves |= {(length, kind, True): 0 for kind in range(5)}
    kept.get(parse_constraint(regex="b"), BYTES)
    assert first not in kept.constraints.values()


def test_what_is_remembered_is_bounded(monkeypatch):
    constraint = Constraint(parse_constraint(regex="(a|b){3}"), made(regex="(a|b){3}"))
    monkeypatch.setattr("starr.decode.extras.constraints.compile.MAX_MEMO_BYTES", 1000)
    old = constraint.walk([MASK] * 5)
    new = constraint.walk([MASK] * 3)
    assert new.reach is not old.reach
    assert new.feasible
    assert old.feasible
