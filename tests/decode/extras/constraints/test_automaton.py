"""From bytes to tokens."""

import numpy as np
import pytest

from starr.decode.extras.constraints.automaton import ENDING, NOWHERE, lift, minimize, spell_tokens
from starr.errors import InputError
from tests.decode.extras.constraints.toy import EOS, PATTERNS, VOCABULARY, accepts, made, reach_of
from tests.reference.ref_constraints import completions


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_shortest_answer(pattern):
    lengths = [n for n in range(6) if next(completions([None] * n, VOCABULARY, EOS, pattern), None) is not None]
    assert reach_of(pattern).automaton.shortest == min(lengths)


def test_answers_are_whole_characters():
    automaton = made(regex=".+")
    assert accepts(automaton, "é".encode())
    assert not accepts(automaton, "é".encode()[:1])


def test_states_that_act_alike_are_one():
    table = np.full((6, 256), -1, dtype=np.int32)
    table[0, ord("a")], table[0, ord("b")] = 1, 2
    table[1, ord("c")], table[2, ord("c")] = 3, 4  # two ways to the same end; state 5 is DEAD
    final = np.array([False, False, False, True, True, False])
    small, start, ends = minimize(table, 0, final)
    assert len(small) == 4, "start, middle, end and DEAD"
    assert ends.sum() == 1
    assert small[start, ord("a")] == small[start, ord("b")]
    assert (small[-1] == 3).all()


def test_a_long_chain_is_kept_as_it_is():
    automaton = made(regex="a{1,900}b")
    assert automaton.states == 903
    assert accepts(automaton, "a" * 900 + "b")
    assert not accepts(automaton, "a" * 901 + "b")


def test_tokens_are_gathered_by_what_they_do():
    spelling = spell_tokens([b"", b"12", b"7", b"x", b"1x", b"003", b"\xc3"], (0,))
    table = np.full((2, 256), 1, dtype=np.int32)
    table[0, [*b"0123456789"]] = 0
    automaton = lift(table, 0, np.array([True, False]), spelling, "regex")
    assert automaton.class_of.tolist() == [ENDING, 2, 2, NOWHERE, NOWHERE, 2, NOWHERE]
    assert automaton.states == 2, "the digits, and END"
    assert automaton.shortest == 0


def test_what_has_too_many_moves_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("starr.decode.extras.constraints.automaton.MAX_CELLS", 10)
    with pytest.raises(InputError, match="json_schema is too large") as caught:
        made(json_schema={"type": "integer"})
    assert caught.value.param == "json_schema"


def test_equal_vocabularies_have_equal_fingerprints():
    one, two = spell_tokens([b"a", b""], (1,)), spell_tokens([b"a", b""], (1,))
    assert one.fingerprint == two.fingerprint
    assert one.fingerprint != spell_tokens([b"b", b""], (1,)).fingerprint
