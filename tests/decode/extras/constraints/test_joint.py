"""Commits of one step against brute force."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from starr.decode.extras.constraints.joint import best_path, by_confidence
from starr.decode.extras.constraints.reach import GOES_ON, MASK, Walk
from tests.decode.extras.constraints.toy import (
    EOS,
    VOCABULARY,
    canvases,
    examples,
    patterns,
    reach_of,
    sets_of,
    walk_of,
)
from tests.reference.ref_constraints import best, completions


@examples
@given(pattern=patterns, length=st.integers(1, 4), data=st.data())
def test_commits_by_confidence_stay_completable_and_are_dropped_only_for_a_reason(pattern, length, data):
    reach = reach_of(pattern)
    walk = walk_of(reach, [None] * length)
    assume(walk.feasible)
    options = sets_of(walk)
    order = data.draw(st.permutations(range(length)))
    chosen = [(place, data.draw(st.sampled_from(sorted(options[place])))) for place in order]
    kept = by_confidence(walk, [(place, int(reach.automaton.class_of[token])) for place, token in chosen])
    assert kept[0]
    canvas = [None] * length
    for (place, token), fits in zip(chosen, kept, strict=True):
        tried = [*canvas[:place], token, *canvas[place + 1 :]]
        assert fits == (next(completions(tried, VOCABULARY, EOS, pattern), None) is not None)
        canvas = tried if fits else canvas
    assert walk.feasible


@examples
@given(pattern=patterns, canvas=canvases, seed=st.integers(0, 10**6), data=st.data())
def test_the_best_path_is_the_best_of_all(pattern, canvas, seed, data):
    reach = reach_of(pattern)
    walk = walk_of(reach, canvas)
    assume(walk.feasible)
    free = [place for place, token in enumerate(canvas) if token is None]
    assume(free)
    some = data.draw(st.sets(st.sampled_from(free), min_size=1))
    draw = np.random.default_rng(seed).normal(size=(len(canvas), reach.automaton.classes))
    chosen = best_path(walk, {place: draw[place] for place in some})
    class_of = reach.automaton.class_of
    scores = {place: [draw[place][class_of[token]] for token in range(len(VOCABULARY))] for place in some}
    total = sum(draw[place][chosen[place]] for place in some)
    assert total == pytest.approx(best(canvas, VOCABULARY, EOS, pattern, scores))
    for place in some:
        walk.fill(place, chosen[place])
    assert walk.feasible


def test_the_best_path_ends_no_text_that_goes_on():
    walk = Walk(reach_of("a*"), [GOES_ON, GOES_ON, MASK])
    ending = np.zeros(walk.reach.automaton.classes)
    ending[1] = 9.0
    assert best_path(walk, {0: ending, 2: ending})[0] != 1
    assert best_path(walk, {0: ending, 2: ending})[2] == 1


def test_commits_that_would_take_long_wait_for_the_next_step(monkeypatch):
    walk, asked = walk_of(reach_of("[abc]{2,4}"), [None] * 4), [(0, 2), (1, 2), (2, 2)]
    assert by_confidence(walk_of(walk.reach, [None] * 4), asked) == [True, True, True]
    monkeypatch.setattr("starr.decode.extras.constraints.joint.MOST_REPAIRS", 1)
    assert by_confidence(walk, asked) == [True, False, False], "the surest is never kept waiting"
    assert walk.feasible
