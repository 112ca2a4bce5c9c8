"""Which tokens each position of a canvas may hold so that the canvas can still be completed, in its own length.

Forward, the states that the positions before can lead to; backward, the states from which the positions after can
end well. A token is allowed where it leads from one of the first to one of the second. The two walks depend on what
positions hold, masks being any token; so filling a mask with an allowed token keeps the canvas completable, and
filling it with another makes that impossible.

Sets of states are interned, and every move from a set is remembered: a walk over a canvas is one dictionary look-up a
position, whatever the size of the automaton. Positions are *symbols*: the class of a held token, or one of two masks.

Each proposal of a step alone is allowed; two together need not be. ``commit_surest`` takes them one after another, the
surest first, and drops what the ones before it rule out. ``find_best_path`` chooses all tokens at once: of the strings
that the automaton takes, the one whose chosen positions have the largest product of probabilities (DINGO,
arXiv:2505.23061).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from starr.decode.extras.constraints.automaton import ENDING, Automaton, Bools

MASK = -1  # any token
GOES_ON = -2  # any token but end-of-text
MAX_REPAIRS = 1 << 26  # states times positions that the commits of one step look at: some tenths of a second
MAX_TABLE_BYTES = 64 << 20

Floats = NDArray[np.float64]
SetKey = tuple[int, int, bool]  # the states before, the states behind, and whether end-of-text is left out


class Reach:
    """The memory of walks over canvases of one automaton; several threads may use it."""

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
        self.classes: dict[SetKey, Bools] = {}
        start = np.arange(automaton.states + 1) == automaton.start
        self.first, self.last = self.intern(start), self.intern(automaton.final)

    def intern(self, states: Bools) -> int:
        """Return the number of a set of states (S + 2,)."""
        with self.lock:
            name = self.names.setdefault(states.tobytes(), len(self.sets))
            if name == len(self.sets):
                self.sets.append(states)
            return name

    def move(self, name: int, symbol: int, ahead: bool) -> int:
        """Return the set after (before, if not ``ahead``) a position that holds ``symbol``."""
        key = (name, symbol, ahead)
        target = self.moves.get(key)
        if target is None:
            target = self.moves[key] = self.intern(self.move_states(self.sets[name], symbol, ahead))
        return target

    def move_states(self, states: Bools, symbol: int, ahead: bool) -> Bools:
        """Move a set of states (S + 2,) over one position."""
        if symbol < 0:
            rows = self.packed[symbol, ahead][states]
            return np.unpackbits(np.bitwise_or.reduce(rows, axis=0), count=len(states)).astype(bool)
        column = self.automaton.moves[:, symbol]
        if not ahead:
            return states[column]
        target = np.zeros_like(states)
        target[column[states]] = True
        target[-1] = False  # DEAD
        return target

    def allowed_classes(self, key: SetKey) -> Bools:
        """(K,) bool: classes of the tokens that lead from one set to the other."""
        classes = self.classes.get(key)
        if classes is None:
            before, behind, goes_on = key
            leads: Bools = self.sets[behind][self.automaton.moves[self.sets[before]]]
            classes = np.logical_or.reduce(leads, axis=0)
            if goes_on:
                classes[ENDING] = False
            self.classes[key] = classes
        return classes

    @property
    def nbytes(self) -> int:
        """About how many bytes are remembered."""
        return (
            sum(matrix.nbytes for matrix in self.packed.values())
            + len(self.sets) * (self.automaton.states + 100)
            + len(self.classes) * self.automaton.classes
            + 200 * len(self.moves)
        )


class Walk:
    """One canvas and its two walks. A change of one position repairs the walks only as far as they change."""

    def __init__(self, reach: Reach, symbols: Sequence[int]) -> None:
        self.reach, self.symbols = reach, list(symbols)
        self.before, behind = [reach.first], [reach.last]  # sets before position 0, 1, ... and after the last
        for symbol in self.symbols:
            self.before.append(reach.move(self.before[-1], symbol, True))
        for symbol in reversed(self.symbols):
            behind.append(reach.move(behind[-1], symbol, False))
        self.behind = behind[::-1]

    @property
    def feasible(self) -> bool:
        """Whether the canvas can be completed."""
        sets = self.reach.sets
        return bool((sets[self.before[0]] & sets[self.behind[0]]).any())

    def key_at(self, position: int) -> SetKey:
        """Return the key of a position's allowed set."""
        return self.before[position], self.behind[position + 1], self.symbols[position] == GOES_ON

    def classes_at(self, position: int) -> Bools:
        """(K,) bool: the classes that a position may hold; no end-of-text where the text must go on."""
        return self.reach.allowed_classes(self.key_at(position))

    def allows(self, position: int, token_class: int) -> bool:
        """Test whether a position may hold a token."""
        return bool(self.classes_at(position)[token_class])

    def fill(self, position: int, symbol: int) -> int:
        """Let a position hold something else; return how many positions of the walks were looked at."""
        self.symbols[position] = symbol
        steps = 0
        for i in range(position, len(self.symbols)):
            new, steps = self.reach.move(self.before[i], self.symbols[i], True), steps + 1
            if new == self.before[i + 1]:
                break
            self.before[i + 1] = new
        for i in range(position, -1, -1):
            new, steps = self.reach.move(self.behind[i + 1], self.symbols[i], False), steps + 1
            if new == self.behind[i]:
                break
            self.behind[i] = new
        return steps


def commit_surest(walk: Walk, commits: Sequence[tuple[int, int]]) -> list[bool]:
    """Fill the walk with those commits (position, class), surest first, that go together; return which ones.

    Where an automaton counts, every commit changes the walks all over the canvas. When the step has looked at many
    positions, the other commits wait for the next one, so that no row holds up those beside it.
    """
    kept: list[bool] = []
    left = MAX_REPAIRS // walk.reach.automaton.states
    for position, token_class in commits:
        fits = (left > 0 or not any(kept)) and walk.allows(position, token_class)
        if fits:
            left -= walk.fill(position, token_class)
        kept.append(fits)
    return kept


def find_best_path(walk: Walk, scores: Mapping[int, Floats]) -> dict[int, int]:
    """Choose the classes of all positions of ``scores`` (position: log-probability of each class, (K,)) together.

    Viterbi over states, from those that the walk can end well. A position without a score holds what it holds, or any
    token at no cost where it is a mask. Ties go to the lower state, then the lower class.
    """
    automaton, sets = walk.reach.automaton, walk.reach.sets
    states, classes, goals = automaton.ways
    starts = automaton.first_ways
    gains = [score_classes(automaton, symbol, scores.get(i)) for i, symbol in enumerate(walk.symbols)]
    totals = [np.where(sets[walk.before[0]], 0.0, -np.inf)]
    for i, gain in enumerate(gains):
        total = np.full(len(totals[-1]), -np.inf)
        if walk.symbols[i] >= 0 and i not in scores:
            np.maximum.at(total, automaton.moves[:, walk.symbols[i]], totals[-1])
        else:
            total[goals[starts]] = np.maximum.reduceat(totals[-1][states] + gain[classes], starts)
        total[~sets[walk.behind[i + 1]]] = -np.inf
        totals.append(total)
    state, chosen = int(totals[-1].argmax()), {}
    for i in range(len(gains) - 1, -1, -1):  # back along the ways by which the best totals came
        first, last = np.searchsorted(goals, [state, state + 1])
        way = first + int((totals[i][states[first:last]] + gains[i][classes[first:last]]).argmax())
        state, chosen[i] = int(states[way]), int(classes[way])
    return {i: chosen[i] for i in scores}


def score_classes(automaton: Automaton, symbol: int, score: Floats | None) -> Floats:
    """(K,): what each class adds to the total at a position."""
    if score is None and symbol >= 0:
        return np.where(np.arange(automaton.classes) == symbol, 0.0, -np.inf)
    gain = np.zeros(automaton.classes) if score is None else score.astype(np.float64)
    if symbol == GOES_ON:
        gain[ENDING] = -np.inf
    return gain


class ClassTable:
    """One automaton's classes on a device, and the sets that were used last, as rows over the vocabulary."""

    def __init__(self, automaton: Automaton, device: torch.device) -> None:
        self.class_of = torch.from_numpy(automaton.class_of).to(device=device, dtype=torch.int64)  # (V,)
        self.classes = automaton.classes
        self.sets: dict[SetKey, Tensor] = {}
        self.reach: Reach | None = None  # that ``sets`` belong to

    def allowed_tokens(self, walk: Walk, key: SetKey) -> Tensor:
        """(V,) bool: the tokens of a set."""
        if walk.reach is not self.reach or len(self.sets) * len(self.class_of) > MAX_TABLE_BYTES:
            self.sets, self.reach = {}, walk.reach
        tokens = self.sets.get(key)
        if tokens is None:
            classes = torch.from_numpy(walk.reach.allowed_classes(key))
            tokens = self.sets[key] = classes.to(self.class_of.device)[self.class_of]
        return tokens

    @property
    def nbytes(self) -> int:
        """About how many bytes are on the device."""
        return self.class_of.nbytes + len(self.sets) * len(self.class_of)

    def best_of_classes(self, values: Tensor) -> Tensor:
        """(N, K): the largest of each class among values (N, V)."""
        blank = values.new_full((len(values), self.classes), -torch.inf)
        return blank.scatter_reduce_(1, self.class_of.expand_as(values), values, "amax")


class SetTable:
    """The sets of one step; set 0 has every token, for positions of rows without a constraint."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.rows = [torch.ones(size, dtype=torch.bool, device=device)]
        self.numbers: dict[tuple[int, SetKey], int] = {}

    def number(self, table: ClassTable, walk: Walk, position: int) -> int:
        """Return the number of a position's set."""
        key = walk.key_at(position)
        number = self.numbers.setdefault((id(table), key), len(self.rows))
        if number == len(self.rows):
            self.rows.append(table.allowed_tokens(walk, key))
        return number

    def stack(self) -> Tensor:
        """(M, V) bool: every set."""
        return torch.stack(self.rows)
