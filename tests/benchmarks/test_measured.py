"""What the benchmarks of enforce and of smoothed iteration take for granted, and what they conclude."""

from __future__ import annotations

import pytest

import starr
from benchmarks.enforce import ALIKE, MODES
from benchmarks.smooth import DINFER, Graded, Way, decode, verdict
from tests.tiny import tiny_model

PROMPTS = [[0, 7, 8, 9], [0, 40], [0, *range(20, 40)]]
PLAIN, SMOOTH = Way(), Way(**DINFER)


@pytest.mark.parametrize("strategy", ALIKE)
def test_every_mode_lets_all_through_that_these_decide(strategy):
    model = tiny_model(sharpness=6.0)
    found = [
        [(g.tokens, g.stats.forwards) for g in starr.generate(model, PROMPTS, strategy=strategy, enforce=mode)]
        for mode in MODES
    ]
    assert found[0] == found[1] == found[2]


def test_the_loop_without_smoothing_is_the_threshold_and_each_way_is_its_own():
    model = tiny_model(sharpness=6.0)
    ways = [Way(tau=0.9), Way(tau=0.9, first=1.0, most=1.0), Way(tau=0.97)]
    ours = [starr.generate(model, PROMPTS, strategy=f"threshold:tau={tau}", max_tokens=48) for tau in (0.9, 0.97)]
    moved = 0
    for prompt, *plain in zip(PROMPTS, *ours, strict=True):
        found = decode(model, prompt, 48, ways)
        for (canvas, forwards), g in zip((found[0], found[2]), plain, strict=True):
            assert (canvas[: len(g.tokens)], forwards) == (g.tokens, g.stats.forwards)
        assert decode(model, prompt, 48, ways[1:2]) == found[1:2], "rows do not depend on their neighbours"
        moved += found[1] != found[0]
    assert moved, "what is fed back matters"


def grades(both: int, forwards: int, n: int = 300) -> list[Graded]:
    return [Graded(i < both, i < both, forwards + i % 3) for i in range(n)]


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
    line = verdict({PLAIN: grades(240, 10), SMOOTH: grades(both, forwards)})
    assert line.startswith(f"Verdict, n = 300: {word}. ")
    assert "forwards" in line


def test_what_another_plain_way_reaches_is_no_gain():
    quick = Way(tau=0.7)
    found = {PLAIN: grades(240, 10), quick: grades(240, 7), SMOOTH: grades(240, 8)}
    assert "no gain" in verdict(found)


def test_what_beats_only_a_plain_way_that_nobody_would_use_is_no_gain():
    poor = Way(tau=0.7)
    found = {PLAIN: grades(240, 10), poor: grades(180, 12), SMOOTH: grades(230, 10)}
    assert "no gain" in verdict(found)
