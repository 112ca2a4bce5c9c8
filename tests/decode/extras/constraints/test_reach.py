"""Allowed sets against brute force."""

from hypothesis import assume, given
from hypothesis import strategies as st

from starr.decode.extras.constraints.reach import GOES_ON, MASK, Walk
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
from tests.reference.ref_constraints import allowed


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
