"""What the tests of constraints share: automata over bytes, and a small vocabulary for brute force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from starr.decode.extras.constraints.automaton import Automaton, lift, minimize, spell_tokens
from starr.decode.extras.constraints.compile import compile_constraint
from starr.decode.extras.constraints.expression import parse_constraint
from starr.decode.extras.constraints.walks import MASK, Reach, Walk

BYTES = spell_tokens([bytes([byte]) for byte in range(256)] + [b""], (256,))
VOCABULARY = [b"", b"a", b"b", b"ab", b"ba", b"c", b"abc", b"bb"]
EOS = 0
PATTERNS = ["a*", "(ab)+c?", "a|ab|abc", "(a|b){3}", "(?:ab|ba)*c", "b+a?b+", "[abc]{2,4}", "abcab", "(a|ab)(c|bc)?"]
canvases = st.lists(st.none() | st.integers(0, len(VOCABULARY) - 1), min_size=1, max_size=4)
patterns = st.sampled_from(PATTERNS)
examples = settings(max_examples=150, deadline=None)
KNOWN: dict[str, Reach] = {}


def made(**given) -> Automaton:
    """The automaton over single bytes."""
    return compile_constraint(parse_constraint(**given), BYTES)


def accepts(automaton: Automaton, text: str | bytes) -> bool:
    state = automaton.start
    for byte in text.encode() if isinstance(text, str) else text:
        state = automaton.moves[state, automaton.class_of[byte]]
    return bool(automaton.final[state])


def reach_of(pattern: str) -> Reach:
    """The automaton of a pattern over the small vocabulary, made once."""
    if pattern not in KNOWN:
        KNOWN[pattern] = Reach(compile_constraint(parse_constraint(regex=pattern), spell_tokens(VOCABULARY, (EOS,))))
    return KNOWN[pattern]


def walk_of(reach: Reach, canvas) -> Walk:
    """``None`` is a mask."""
    class_of = reach.automaton.class_of
    return Walk(reach, [MASK if token is None else int(class_of[token]) for token in canvas])


def sets_of(walk: Walk) -> list[set[int]]:
    """The tokens that each position may hold."""
    class_of = walk.reach.automaton.class_of
    return [
        {token for token in range(len(VOCABULARY)) if walk.allows(place, class_of[token])}
        for place in range(len(walk.symbols))
    ]


@dataclass(frozen=True)
class ByteMachine:
    """A random automaton over a, b and c: ``moves[state][letter]`` is the next state, None is nowhere."""

    moves: tuple[tuple[int | None, ...], ...]
    final: tuple[bool, ...]

    def takes(self, text: bytes) -> bool:
        state: int | None = 0
        for byte in text:
            state = None if state is None else self.moves[state][byte - ord("a")]
        return state is not None and self.final[state]

    def reach(self) -> Reach:
        """The same over the small vocabulary, as compiled expressions come by it."""
        states = len(self.final)
        table = np.full((states + 1, 256), -1, dtype=np.int32)
        for state, row in enumerate(self.moves):
            table[state, ord("a") : ord("d")] = [-1 if goal is None else goal for goal in row]
        small = minimize(table, 0, np.array([*self.final, False]))
        return Reach(lift(*small, spell_tokens(VOCABULARY, (EOS,)), "regex"))


@st.composite
def machines(draw) -> ByteMachine:
    states = draw(st.integers(1, 5))
    goal = st.none() | st.integers(0, states - 1)
    rows = draw(st.lists(st.tuples(goal, goal, goal), min_size=states, max_size=states))
    return ByteMachine(tuple(rows), tuple(draw(st.lists(st.booleans(), min_size=states, max_size=states))))
