"""What cannot be done is said before the first forward."""

import re

import pytest

from benchmarks.structured_runs import EXPRESSIONS, constrained, model_of
from starr.api import run_all
from starr.decode.request import check_request
from starr.errors import InputError


@pytest.fixture(scope="module")
def model():
    return model_of(3, shift=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 3, "regex": "a{9}"}, "too short: regex needs at least 5 tokens, max_tokens is 3"),
        ({"max_tokens": 9, "eos": "never", "regex": "a"}, "exactly 9 tokens"),
        ({"max_tokens": 9, "strategy": "daedal", "regex": "a"}, "daedal cannot be used"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_forward(model, options, words):
    with pytest.raises(InputError, match=words):
        check_request(constrained(model, **options), model)


def test_a_canvas_of_exactly_the_shortest_length_is_enough(model):
    for pattern in EXPRESSIONS:
        row = constrained(model, regex=pattern, max_tokens=20)
        shortest = row.constraint.automaton.shortest
        row = constrained(model, regex=pattern, max_tokens=max(shortest, 1))
        assert re.fullmatch(pattern, run_all(model, [row], 1)[0].text)
        if shortest > 1:
            with pytest.raises(InputError, match=f"at least {shortest} tokens"):
                check_request(constrained(model, regex=pattern, max_tokens=shortest - 1), model)


def test_what_would_hold_up_the_loop_is_refused_for_a_long_canvas(model, monkeypatch):
    monkeypatch.setattr("starr.decode.extras.constraints.feasible.MOST_WORK", 10_000)
    pattern = "[ab]*a[ab]{6}"
    assert re.fullmatch(pattern, run_all(model, [constrained(model, regex=pattern, max_tokens=8)], 1)[0].text)
    with pytest.raises(InputError, match=r"regex is too large for 24 masks: it has \d+ moves, at most 416"):
        check_request(constrained(model, regex=pattern, max_tokens=24), model)
