"""What the benchmarks of enforce and of smoothed iteration take for granted, and what they conclude."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import starr
from benchmarks.enforce import ALIKE, MODES
from benchmarks.smooth import Way, decoded, verdict
from starr.evals.run.runs import settings_for
from starr.evals.run.store import Sample
from starr.evals.tasks import load_task
from tests.tiny import tiny_model

PROMPTS = [[0, 7, 8, 9], [0, 40], [0, *range(20, 40)]]
PLAIN, SMOOTH = Way("threshold"), Way("threshold", 0.3)


@pytest.mark.parametrize("strategy", ALIKE)
def test_every_mode_lets_all_through_that_these_decide(strategy):
    model = tiny_model(sharpness=6.0)
    found = [
        [(g.tokens, g.stats.forwards) for g in starr.generate(model, PROMPTS, strategy=strategy, enforce=mode)]
        for mode in MODES
    ]
    assert found[0] == found[1] == found[2]


def test_the_smoothed_ways_are_decoded_with_their_weight():
    model, task = starr.load(), load_task("word-problems")
    ways = [Way("threshold:tau=0.5"), Way("threshold:tau=0.5", 2.0)]
    plain, smooth = (decoded(model, task, settings_for(model, task), way, 4, 4)[1] for way in ways)
    assert sorted(s.index for s in smooth) == list(range(4))
    assert {s.index: s.text for s in plain} != {s.index: s.text for s in smooth}


@cache
def sample() -> Sample:
    """One of the runner's own, whose grades the tests change."""
    model, task = starr.load(), load_task("lines")
    return decoded(model, task, settings_for(model, task), PLAIN, 1, 1)[1][0]


def grades(both: int, forwards: int, n: int = 300) -> list[Sample]:
    return [replace(sample(), index=i, both=i < both, forwards=forwards + i % 3) for i in range(n)]


@pytest.mark.parametrize(
    ("both", "forwards", "word"),
    [
        (240, 8, "a gain"),  # as good, quicker
        (290, 10, "a gain"),  # better, as quick
        (240, 10, "no gain"),
        (200, 8, "no gain"),  # quicker and worse
        (290, 12, "no gain"),  # better and slower
    ],
)
def test_the_verdict(both, forwards, word):
    line = verdict("threshold", {PLAIN: grades(240, 10), SMOOTH: grades(both, forwards)})
    assert line.startswith(f"Verdict on threshold: {word}.")
    assert ("forwards" in line) == (word == "a gain")


def test_what_another_plain_way_reaches_is_no_gain():
    quick = Way("threshold:tau=0.7")
    found = {PLAIN: grades(240, 10), quick: grades(240, 7), SMOOTH: grades(240, 8)}
    assert "no gain" in verdict("threshold", found)


def test_what_beats_only_a_plain_way_that_nobody_would_use_is_no_gain():
    poor = Way("threshold:tau=0.7")
    found = {PLAIN: grades(240, 10), poor: grades(180, 12), SMOOTH: grades(230, 10)}
    assert "no gain" in verdict("threshold", found)


def test_another_familys_plain_way_is_not_compared_with():
    found = {PLAIN: grades(240, 10), SMOOTH: grades(240, 8), Way("starr"): grades(300, 5)}
    assert "a gain" in verdict("threshold", found)
    assert verdict("starr", found) == "Verdict on starr: no gain."
