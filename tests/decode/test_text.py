"""Tokens to text: ends, templates, settled text that only grows."""

from starr.decode.text import CanvasText, settled_text, until_end
from tests.tiny import EOS, MASK


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
