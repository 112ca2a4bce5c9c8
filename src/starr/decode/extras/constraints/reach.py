"""Which tokens each position of a canvas may hold so that the canvas can still be completed, in its own length.

Forward, the states that the positions before can lead to; backward, the states from which the positions after can
end well. A token is allowed where it leads from one of the first to one of the second. The two walks depend on what
positions hold, masks being any token; so filling a mask with an allowed token keeps the canvas completable, and
filling it with another makes that impossible.

Sets of states are interned, and every move from a set is remembered: a walk over a canvas is one dictionary look-up a
position, whatever the size of the automaton. Positions are *symbols*: the class of a held token, or one of two masks.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from starr.decode.extras.constraints.automaton import ENDING, Automaton, Bools

MASK = -1  # any token
GOES_ON = -2  # any token but end-of-text


class Reach:
    """Walks over canvases of one automaton; several threads may use it."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.lock = threading.Lock()
        edges = automaton.edges
        without = edges.copy()
        without[:, -2] = False
        self.packed = {
            (symbol, ahead): np.packbits(matrix if ahead else matrix.T, axis=1)
            for symbol, matrix in ((MASK, edges), (GOES_ON, without))
            for ahead in (True, False)
        }
        self.sets: list[Bools] = []
        self.names: dict[bytes, int] = {}
        self.moves: dict[tuple[int, int, bool], int] = {}
        self.rows: dict[tuple[int, int], NDArray[np.bool_]] = {}
        start = np.zeros(self.automaton.states + 1, dtype=bool)
        start[self.automaton.start] = True
        self.first, self.last = self.named(start), self.named(self.automaton.final)

    def named(self, states: Bools) -> int:
        """The number of a set of states (S + 2,)."""
        with self.lock:
            name = self.names.setdefault(states.tobytes(), len(self.sets))
            if name == len(self.sets):
                self.sets.append(states)
            return name

    def move(self, name: int, symbol: int, ahead: bool) -> int:
        """The set after (before, if not ``ahead``) a position that holds ``symbol``."""
        key = (name, symbol, ahead)
        found = self.moves.get(key)
        if found is None:
            found = self.moves[key] = self.named(self.moved(self.sets[name], symbol, ahead))
        return found

    def moved(self, states: Bools, symbol: int, ahead: bool) -> Bools:
        if symbol < 0:
            rows = self.packed[symbol, ahead][states]
            return np.unpackbits(np.bitwise_or.reduce(rows, axis=0), count=len(states)).astype(bool)
        column = self.automaton.moves[:, symbol]
        if not ahead:
            return states[column]
        found = np.zeros_like(states)
        found[column[states]] = True
        found[-1] = False  # DEAD
        return found

    def forward(self, symbols: Sequence[int]) -> list[int]:
        """Sets before position 0, 1, ... and after the last: one more than there are symbols."""
        walked = [self.first]
        for symbol in symbols:
            walked.append(self.move(walked[-1], symbol, True))
        return walked

    def backward(self, symbols: Sequence[int]) -> list[int]:
        """Sets from which the rest can end well, for the same places."""
        walked = [self.last]
        for symbol in reversed(symbols):
            walked.append(self.move(walked[-1], symbol, False))
        return walked[::-1]

    def meets(self, ahead: int, back: int) -> bool:
        """Whether two sets share a state; at any place of a canvas, whether it can be completed."""
        return bool((self.sets[ahead] & self.sets[back]).any())

    def allowed(self, before: int, behind: int) -> NDArray[np.bool_]:
        """(K,) bool: classes of the tokens that lead from one set to the other."""
        key = (before, behind)
        found = self.rows.get(key)
        if found is None:
            rest = self.sets[behind]
            leads: Bools = rest[self.automaton.moves[self.sets[before]]]
            found = self.rows[key] = np.logical_or.reduce(leads, axis=0)
        return found

    @property
    def nbytes(self) -> int:
        """About how many bytes are remembered."""
        return (
            sum(matrix.nbytes for matrix in self.packed.values())
            + len(self.sets) * (self.automaton.states + 100)
            + len(self.rows) * self.automaton.classes
            + 200 * len(self.moves)
        )


class Walk:
    """One canvas and its two walks; positions may be filled, which repairs the walks only as far as they change."""

    def __init__(self, reach: Reach, symbols: Sequence[int]) -> None:
        self.reach, self.symbols = reach, list(symbols)
        self.before, self.behind = reach.forward(symbols), reach.backward(symbols)

    @property
    def feasible(self) -> bool:
        return self.reach.meets(self.before[0], self.behind[0])

    def set_at(self, place: int) -> tuple[int, int]:
        """The name of the allowed set of a position."""
        return self.before[place], self.behind[place + 1]

    def kinds(self, place: int) -> Bools:
        """(K,) bool: the classes that a position may hold."""
        found = self.reach.allowed(*self.set_at(place))
        if self.symbols[place] == GOES_ON:
            found = found.copy()
            found[ENDING] = False
        return found

    def allows(self, place: int, token_class: int) -> bool:
        """Whether a position may hold a token; no end-of-text where the text must go on."""
        if self.symbols[place] == GOES_ON and token_class == ENDING:
            return False
        return bool(self.reach.allowed(*self.set_at(place))[token_class])

    def fill(self, place: int, symbol: int) -> int:
        """Let a position hold something else; returns how many positions of the walks were looked at."""
        self.symbols[place] = symbol
        seen = 0
        for i in range(place, len(self.symbols)):
            new, seen = self.reach.move(self.before[i], self.symbols[i], True), seen + 1
            if new == self.before[i + 1]:
                break
            self.before[i + 1] = new
        for i in range(place, -1, -1):
            new, seen = self.reach.move(self.behind[i + 1], self.symbols[i], False), seen + 1
            if new == self.behind[i]:
                break
            self.behind[i] = new
        return seen
