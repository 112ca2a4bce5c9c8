"""Infilling: holes are filled, everything else stays to the letter."""

from __future__ import annotations

import pytest

import starr
from starr.api import Options, build_request
from starr.decode.caches import caches
from starr.decode.prompts.infill import has_holes, split_holes
from starr.errors import InputError, LengthError
from tests.tiny import BOS, EOS, MASK, Letters, form_of, tiny_model

TEXT = "Tom has [MASK:3] apples, so [MASK:2] now"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a [MASK:2] b", ["a ", 2, " b"]),
        ("[MASK:1][MASK:12]x", [1, 12, "x"]),
        ("the [[MASK]] token [MASK:4]", ["the [MASK] token ", 4]),
        ("[[MASK:3]] is [MASK:03]", ["[MASK:3] is ", 3]),
        ("[a] [mask:2] [MASKED] [MASK:1]", ["[a] [mask:2] [MASKED] ", 1]),
    ],
)
def test_holes_and_literals(text, parts):
    assert split_holes(text) == parts
    assert has_holes(text)


def test_a_literal_is_no_hole():
    assert has_holes("a [MASK]")
    assert not has_holes("the [[MASK]] token")


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
@pytest.mark.parametrize("cache", [entry.name for entry in caches() if not entry.kind.block_causal])
def test_everything_else_is_kept(cache, shift):
    model = tiny_model(shift=shift)
    for block in (None, 6):
        result = starr.infill(model, TEXT, cache=cache, block_length=block, trace=True)
        encode = Letters().encode
        before, between, after = encode("Tom has "), encode(" apples, so "), encode(" now")
        kept = result.tokens
        assert len(kept) == len(before) + 3 + len(between) + 2 + len(after)
        assert kept[: len(before)] == before
        assert kept[len(before) + 3 : -len(after) - 2] == between
        assert kept[-len(after) :] == after
        assert MASK not in kept
        assert EOS not in kept
        assert result.stats.tokens == result.stats.commits - result.stats.revocations == 5
        assert result.finish_reason == "stop"


@pytest.mark.parametrize("entry", starr.strategies(), ids=lambda entry: entry.name)
def test_every_strategy_fills(entry):
    if starr.strategy(entry.name).needs().get("growth"):
        with pytest.raises(InputError, match="moves frozen text"):
            starr.infill(tiny_model(), TEXT, strategy=form_of(entry.name))
        return
    result = starr.infill(tiny_model(), TEXT, strategy=form_of(entry.name))
    assert MASK not in result.tokens
    assert result.stats.tokens == 5


def test_a_hole_may_come_first_and_what_is_behind_it_counts():
    model = tiny_model()
    one, other = (starr.infill(model, f"[MASK:4] {end}", strategy="confidence") for end in ("abc", "xyz"))
    assert one.tokens[:4] != other.tokens[:4]
    assert build_request(model, "[MASK:4] abc", Options(infill=True)).tokens[0] == BOS


def test_a_list_of_texts_and_streaming_give_the_same():
    model = tiny_model()
    alone = starr.infill(model, TEXT)
    assert [g.text for g in starr.infill(model, [TEXT, "a [MASK:2]", TEXT])][::2] == [alone.text] * 2
    *_, last = starr.stream(model, TEXT, infill=True)
    assert last.text == last.generation.text == alone.text
    assert last.stats.tokens == 5


@pytest.mark.parametrize(
    ("text", "words", "error"),
    [
        ("a [MASK:0] b", "at least 1, got [MASK:0]", InputError),
        ("a [MASK:-1] b", "at least 1, got [MASK:-1]", InputError),
        ("a [MASK:two] b", "at least 1, got [MASK:two]", InputError),
        ("a [MASK] b", "at least 1, got [MASK]", InputError),
        ("[MASK:3] [MASK:2]", "There must be text beside the holes", InputError),
        ("no hole [[MASK]]", "There is no hole", InputError),
        ("", "There is no hole", InputError),
        ("a [MASK:300]", "The holes have 300 positions, the model has 256", LengthError),
        ("a [MASK:999999999]", "the model has 256", LengthError),
        ("a" * 250 + "[MASK:20]", "positions, the model has 256", LengthError),
    ],
)
def test_bad_input_is_one_line(text, words, error):
    with pytest.raises(error) as caught:
        starr.infill(tiny_model(), text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
