"""Tokens to text: ends, templates, settled text that only grows, and stop strings."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.text import CanvasText, cut_at, overlap, sendable, settled_text, stop_strings, until_end
from starr.errors import InputError
from tests.tiny import EOS, MASK

LETTERS = st.text(alphabet="ab", max_size=12)
STOPS = st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3)


def test_tokens_before_the_first_end():
    assert until_end([5, 6, EOS, 7], {EOS}) == [5, 6]
    assert until_end([5, 6], {EOS}) == [5, 6]


def test_an_end_cuts_the_text_or_only_its_run_between_templates():
    tokens, masked = [5, EOS, 6, 7, 8, MASK], [False] * 5 + [True]
    text = CanvasText(tokens, masked, [False, False, False, True, False, False])
    assert text.kept({EOS}, ends=True) == [0]
    assert text.kept({EOS}, ends=False) == [0, 3, 4], "template text is never left out"
    assert text.made([0, 3, 4]) == 2, "and never counted"


class Bytes:
    """A tokenizer of single bytes."""

    def decode(self, tokens):
        return bytes(tokens).decode("utf8", errors="replace")


def test_half_a_character_waits_and_shown_text_is_never_taken_back():
    euro = list("€".encode())
    assert settled_text(Bytes(), [65, *euro[:2]], "") == "A"
    assert settled_text(Bytes(), [65, *euro], "A") == "A€"
    assert settled_text(Bytes(), [66], "A") == "A"


@pytest.mark.parametrize("wrong", [5, b"ab", ["a", 5], ["a", ""], {"a": 1}, None])
def test_what_is_no_text_is_refused(wrong):
    with pytest.raises(InputError, match="stop takes texts"):
        stop_strings(wrong)


def test_one_text_or_several_or_none():
    assert [stop_strings(given) for given in ("", (), "ab", ["a", "b"])] == [(), (), ("ab",), ("a", "b")]


def literal(text, stops):
    """One character after the other: the first that completes a stop string ends the text where that string began."""
    for end in range(1, len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            return text[: end - max(map(len, complete))]
    return text


@settings(deadline=None, max_examples=300)
@given(LETTERS, STOPS)
def test_cut_is_the_literal_rule(text, stops):
    assert text[: cut_at(text, stops)] == literal(text, stops)


@settings(deadline=None, max_examples=300)
@given(LETTERS, STOPS, st.lists(st.integers(0, 12)))
def test_whatever_the_pieces_nothing_sent_is_contradicted(text, stops, ends):
    sent = ""
    for end in sorted(ends):
        now = sendable(text[:end], stops)
        assert now.startswith(sent)
        assert cut_at(now, stops) is None
        sent = now
        if cut_at(text[:end], stops) is not None:
            break
    assert literal(text, stops).startswith(sent)


def test_only_what_may_begin_a_stop_string_is_held_back():
    assert sendable("one\n", ["\n\n"]) == "one"
    assert sendable("one\ntwo", ["\n\n"]) == "one\ntwo"
    assert sendable("one\n\ntwo", ["\n\n"]) == "one"
    assert overlap("abab", "ababc") == 4
    assert overlap("abc", "abc") == 0
