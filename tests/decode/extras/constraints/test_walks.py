"""Allowed sets and the commits of one step against brute force; allowed sets on the device."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from starr.decode.extras.constraints.walks import (
    GOES_ON,
    MASK,
    ClassTable,
    SetTable,
    Walk,
    commit_surest,
    find_best_path,
)
from tests.decode.extras.constraints.toy import (
    EOS,
    VOCABULARY,
    canvases,
    examples,
    machines,
    patterns,
    reach_of,
    sets_of,
    walk_of,
)
from tests.reference.ref_constraints import allowed, best, completions


@examples
@given(pattern=patterns, canvas=canvases)
def test_allowed_sets_are_those_of_brute_force(pattern, canvas):
    walk = walk_of(reach_of(pattern), canvas)
    expected = allowed(canvas, VOCABULARY, EOS, pattern)
    assert walk.feasible == bool(expected[0])
    if walk.feasible:
        free = [place for place, token in enumerate(canvas) if token is None]
        found = sets_of(walk)
        assert [found[place] for place in free] == [expected[place] for place in free]


@examples
@given(machine=machines(), canvas=canvases)
def test_allowed_sets_of_random_automata_are_those_of_brute_force(machine, canvas):
    reach = machine.reach()
    assume(reach.automaton.shortest is not None)  # else compiling refuses it
    walk = walk_of(reach, canvas)
    expected = allowed(canvas, VOCABULARY, EOS, machine.takes)
    assert walk.feasible == bool(expected[0])
    if walk.feasible:
        free = [place for place, token in enumerate(canvas) if token is None]
        found = sets_of(walk)
        assert [found[place] for place in free] == [expected[place] for place in free]


@examples
@given(pattern=patterns, canvas=canvases, place=st.integers(0, 3), token=st.integers(0, len(VOCABULARY) - 1))
def test_a_repaired_walk_is_a_new_one(pattern, canvas, place, token):
    assume(place < len(canvas))
    reach = reach_of(pattern)
    walk = walk_of(reach, canvas)
    walk.fill(place, int(reach.automaton.class_of[token]))
    fresh = walk_of(reach, [*canvas[:place], token, *canvas[place + 1 :]])
    assert (walk.before, walk.behind) == (fresh.before, fresh.behind)


def test_no_end_of_text_where_the_text_goes_on():
    reach = reach_of("a*")
    walk = Walk(reach, [GOES_ON, GOES_ON, MASK])
    assert not walk.allows(0, int(reach.automaton.class_of[EOS]))
    assert walk.allows(2, int(reach.automaton.class_of[EOS]))


def test_a_canvas_that_cannot_be_completed_says_so():
    assert not walk_of(reach_of("abcab"), [None]).feasible
    assert not walk_of(reach_of("a*"), [2, None]).feasible
    assert walk_of(reach_of("a*"), [EOS, None]).feasible


@examples
@given(pattern=patterns, length=st.integers(1, 4), data=st.data())
def test_commits_commit_surest_stay_completable_and_are_dropped_only_for_a_reason(pattern, length, data):
    reach = reach_of(pattern)
    walk = walk_of(reach, [None] * length)
    assume(walk.feasible)
    options = sets_of(walk)
    order = data.draw(st.permutations(range(length)))
    chosen = [(place, data.draw(st.sampled_from(sorted(options[place])))) for place in order]
    kept = commit_surest(walk, [(place, int(reach.automaton.class_of[token])) for place, token in chosen])
    assert kept[0]
    canvas = [None] * length
    for (place, token), fits in zip(chosen, kept, strict=True):
        tried = [*canvas[:place], token, *canvas[place + 1 :]]
        assert fits == (next(completions(tried, VOCABULARY, EOS, pattern), None) is not None)
        canvas = tried if fits else canvas
    assert walk.feasible


@examples
@given(pattern=patterns, canvas=canvases, seed=st.integers(0, 10**6), data=st.data())
def test_the_find_best_path_is_the_best_of_all(pattern, canvas, seed, data):
    reach = reach_of(pattern)
    walk = walk_of(reach, canvas)
    assume(walk.feasible)
    free = [place for place, token in enumerate(canvas) if token is None]
    assume(free)
    some = data.draw(st.sets(st.sampled_from(free), min_size=1))
    draw = np.random.default_rng(seed).normal(size=(len(canvas), reach.automaton.classes))
    chosen = find_best_path(walk, {place: draw[place] for place in some})
    class_of = reach.automaton.class_of
    scores = {place: [draw[place][class_of[token]] for token in range(len(VOCABULARY))] for place in some}
    total = sum(draw[place][chosen[place]] for place in some)
    assert total == pytest.approx(best(canvas, VOCABULARY, EOS, pattern, scores))
    for place in some:
        walk.fill(place, chosen[place])
    assert walk.feasible


def test_the_find_best_path_ends_no_text_that_goes_on():
    walk = Walk(reach_of("a*"), [GOES_ON, GOES_ON, MASK])
    ending = np.zeros(walk.reach.automaton.classes)
    ending[1] = 9.0
    assert find_best_path(walk, {0: ending, 2: ending})[0] != 1
    assert find_best_path(walk, {0: ending, 2: ending})[2] == 1


def test_commits_that_would_take_long_wait_for_the_next_step(monkeypatch):
    walk, asked = walk_of(reach_of("[abc]{2,4}"), [None] * 4), [(0, 2), (1, 2), (2, 2)]
    assert commit_surest(walk_of(walk.reach, [None] * 4), asked) == [True, True, True]
    monkeypatch.setattr("starr.decode.extras.constraints.walks.MAX_REPAIRS", 1)
    assert commit_surest(walk, asked) == [True, False, False], "the surest is never kept waiting"
    assert walk.feasible


CPU = torch.device("cpu")


def tokens(row: torch.Tensor) -> set[int]:
    return set(row.nonzero().flatten().tolist())


def test_rows_of_the_table_are_the_allowed_sets():
    walk = walk_of(reach_of("(a|ab)(c|bc)?"), [None, None, None])
    table, sets = ClassTable(walk.reach.automaton, CPU), SetTable(len(VOCABULARY), CPU)
    numbers = [sets.number(table, walk, i) for i in range(3)]
    rows = sets.stack()
    assert tokens(rows[0]) == set(range(len(VOCABULARY))), "set 0 has every token"
    assert [tokens(rows[number]) for number in numbers] == sets_of(walk)


def test_equal_sets_are_one_row_and_no_end_of_text_is_another():
    reach = reach_of("a*")
    table, sets = ClassTable(reach.automaton, CPU), SetTable(len(VOCABULARY), CPU)
    free, bound = Walk(reach, [MASK] * 40), Walk(reach, [GOES_ON] * 40)
    middle = range(10, 30)
    assert len({sets.number(table, free, i) for i in middle}) == 1
    ends, goes_on = sets.number(table, free, 10), sets.number(table, bound, 10)
    assert EOS in tokens(sets.stack()[ends])
    assert EOS not in tokens(sets.stack()[goes_on])


def test_the_best_of_each_class():
    table = ClassTable(reach_of("a*").automaton, CPU)
    values = torch.tensor([[5.0, 1.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0]])
    best = table.best_of_classes(values)
    assert best[0, table.class_of[1]] == 1.0
    assert best[0, table.class_of[EOS]] == 5.0


def test_rows_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr("starr.decode.extras.constraints.walks.MAX_TABLE_BYTES", 2 * len(VOCABULARY))
    walk = walk_of(reach_of("abcab"), [None] * 5)
    table = ClassTable(walk.reach.automaton, CPU)
    sets = SetTable(len(VOCABULARY), CPU)
    assert [sets.number(table, walk, i) for i in range(5)] == [1, 2, 3, 4, 5]
    assert len(table.sets) <= 3
