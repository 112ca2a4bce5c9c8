"""From an automaton over bytes to one over tokens, with tokens that act alike gathered into classes.

Letters: S states over bytes, K classes of tokens, V vocabulary. Two more states follow the S: END, which only an
end-of-text reaches and leaves to itself, and DEAD. So an answer shorter than the canvas ends in end-of-texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from starr.errors import InputError

MAX_CELLS = 1 << 23  # states times classes
NOWHERE = 0  # the class of tokens that no state takes
ENDING = 1  # the class of end-of-text
ROUNDS = 64  # of merging states

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Spelling:
    """The bytes of every token that may occur in an answer, longest first."""

    ids: Ints  # (T,)
    lengths: Ints  # (T,), falling
    starts: Ints  # (T,): where in ``letters`` the token begins
    letters: NDArray[np.uint8]
    size: int  # V
    ends: tuple[int, ...]  # end-of-text ids

    @cached_property
    def fingerprint(self) -> str:
        """A digest that is equal for equal vocabularies."""
        digest = hashlib.sha256(repr((self.size, self.ends)).encode())
        for part in (self.ids, self.lengths, self.letters):
            digest.update(part.tobytes())
        return digest.hexdigest()


def spell_tokens(tokens: Sequence[bytes], ends: Sequence[int]) -> Spelling:
    """Sort the bytes of every token; ``tokens[i]`` is empty where token i may not occur in an answer."""
    sizes = np.array([len(text) for text in tokens], dtype=np.int32)
    begins = np.cumsum(sizes, dtype=np.int32) - sizes
    order = np.argsort(-sizes, kind="stable").astype(np.int32)
    order = order[sizes[order] > 0]
    order = order[~np.isin(order, list(ends))]
    letters = np.frombuffer(b"".join(tokens), dtype=np.uint8)
    return Spelling(order, sizes[order], begins[order], letters, len(tokens), tuple(ends))


@dataclass(frozen=True, eq=False)
class Automaton:
    """Which tokens lead where. States 0..S-1, then END, then DEAD."""

    moves: NDArray[np.int16]  # (S + 2, K): the next state
    class_of: Ints  # (V,)
    start: int
    final: Bools  # (S + 2,): an answer may stop here, END included

    @property
    def states(self) -> int:
        """The number of states without DEAD."""
        return len(self.moves) - 1

    @property
    def classes(self) -> int:
        """K."""
        return int(self.moves.shape[1])

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes, with its edges and ways."""
        return self.moves.nbytes + self.class_of.nbytes + len(self.moves) ** 2 + 12 * self.live

    @cached_property
    def live(self) -> int:
        """The number of moves that do not lead to DEAD."""
        return int((self.moves != self.states).sum())

    @cached_property
    def edges(self) -> Bools:
        """(S + 2, S + 2): some token leads from one state to the other; DEAD has no edges."""
        edges = np.zeros((self.states + 1,) * 2, dtype=bool)
        edges[np.arange(self.states + 1)[:, None], self.moves] = True
        edges[:, -1] = False
        return edges

    @cached_property
    def ways(self) -> tuple[Ints, Ints, Ints]:
        """Every move that does not lead to DEAD, as (state, class, next state), sorted by next state, state, class."""
        state, kind = np.nonzero(self.moves != self.states)
        goal = self.moves[state, kind]
        order = np.argsort(goal, kind="stable")
        return tuple(part[order].astype(np.int32) for part in (state, kind, goal))  # type: ignore[return-value]

    @cached_property
    def first_ways(self) -> Longs:
        """The index in ``ways`` at which each next state begins."""
        return np.flatnonzero(np.diff(self.ways[2], prepend=-1))

    @cached_property
    def shortest(self) -> int | None:
        """The fewest tokens of an answer, its end-of-text not counted; None if the vocabulary cannot write one."""
        reached = np.zeros(self.states + 1, dtype=bool)
        reached[self.start] = True
        front = reached
        for count in range(self.states + 1):
            if (front & self.final)[:-2].any():
                return count
            front = self.edges[front].any(axis=0) & ~reached
            reached = reached | front
        return None


def minimize(table: Ints, start: int, final: Bools) -> tuple[Ints, int, Bools]:
    """Merge states that act alike; the result has the same language (S + 1, 256), and DEAD as its last state.

    ``table`` has -1 for none, and its last row is DEAD. Hashes of what a state leads to distinguish states, round by
    round (Moore); where that does not end soon, only the states that cannot end are merged.
    """
    table = np.where(table < 0, len(table) - 1, table)
    letters = np.unique(table, axis=1)  # bytes that act alike do not distinguish states
    weights = np.random.default_rng(0).integers(1, 1 << 62, letters.shape[1] + 1, dtype=np.uint64) | np.uint64(1)
    distance = measure_distance(letters, final)
    group = np.unique(distance, return_inverse=True)[1].reshape(-1)
    for _ in range(ROUNDS):
        hashes = group.astype(np.uint64) * weights[0] + (group[letters].astype(np.uint64) * weights[1:]).sum(axis=1)
        _, first, new = np.unique(hashes, return_index=True, return_inverse=True)
        done, group = len(first) == group.max() + 1, new.reshape(-1)
        if done and (group[table] == group[table[first]][group]).all():
            return merge_states(table, start, final, group)
    return merge_states(table, start, final, np.where(distance < 0, len(table), np.arange(len(table))))


def measure_distance(letters: Ints, final: Bools) -> Longs:
    """(S + 1,): bytes of the shortest way to a final state, -1 where there is none; the last state is DEAD."""
    states, letter = np.nonzero(letters != len(letters) - 1)
    goals = letters[states, letter]
    order = np.argsort(goals, kind="stable")
    sources, starts = states[order], np.searchsorted(goals[order], np.arange(len(letters) + 1))
    distance = np.where(final, 0, -1).astype(np.int64)
    front, count = np.flatnonzero(final), 0
    while len(front):
        count += 1
        near = np.concatenate([sources[starts[state] : starts[state + 1]] for state in front.tolist()])
        front = np.unique(near[distance[near] < 0])
        distance[front] = count
    return distance


def merge_states(table: Ints, start: int, final: Bools, group: Longs) -> tuple[Ints, int, Bools]:
    """Make one state of each group, with that of DEAD last."""
    _, first, which = np.unique(group, return_index=True, return_inverse=True)
    group = which.reshape(-1)
    order = np.argsort(np.arange(len(first)) == group[-1], kind="stable")
    rank = np.argsort(order)
    return rank[group[table[first[order]]]].astype(np.int32), int(rank[group[start]]), final[first[order]]


def lift(table: Ints, start: int, final: Bools, spelling: Spelling, param: str) -> Automaton:
    """Lift a minimal automaton over bytes (S + 1, 256), whose last state is DEAD, to one over tokens."""
    states = len(table) - 1
    columns, node_of = find_columns(table, spelling, param)
    dead, end = states + 1, states
    moves = np.full((states + 2, len(columns) + 2), dead, dtype=np.int16)
    moves[:states, 2:] = np.where(columns[:, :-1] == states, dead, columns[:, :-1]).T
    moves[:states, ENDING][final[:-1]] = end
    moves[end, ENDING] = end
    class_of = np.full(spelling.size, NOWHERE, dtype=np.int32)
    class_of[spelling.ids] = np.where(node_of < 0, NOWHERE, node_of + 2)
    class_of[list(spelling.ends)] = ENDING
    return Automaton(moves, class_of, start, np.concatenate([final[:-1], [True, False]]))


def find_columns(table: Ints, spelling: Spelling, param: str) -> tuple[NDArray[np.int16], Ints]:
    """Find where every token leads from every state: distinct columns (K, S + 1), and each token's (T,), -1 for none.

    All tokens take their bytes together, one a round. Tokens with equal columns so far are one; those that lead
    nowhere leave.
    """
    letters, letter_of = np.unique(table, axis=1, return_inverse=True)
    letter_of = letter_of.reshape(-1)
    states = len(table) - 1
    columns = [np.arange(states + 1, dtype=np.int16)]
    known = {columns[0].tobytes(): 0, np.full(states + 1, states, dtype=np.int16).tobytes(): -1}
    node = np.zeros(len(spelling.ids), dtype=np.int64)
    alive = np.arange(len(node))
    for offset in range(int(spelling.lengths[0]) if len(node) else 0):
        alive = alive[(spelling.lengths[alive] > offset) & (node[alive] >= 0)]
        if not len(alive):
            break
        letter = letter_of[spelling.letters[spelling.starts[alive] + offset]]
        pairs, which = np.unique(node[alive] * letters.shape[1] + letter, return_inverse=True)
        before, byte = np.divmod(pairs, letters.shape[1])
        names = np.empty(len(pairs), dtype=np.int64)
        for i, (old, step) in enumerate(zip(before.tolist(), byte.tolist(), strict=True)):
            column = letters[columns[old], step].astype(np.int16)
            name = known.setdefault(column.tobytes(), len(columns))
            if name == len(columns):
                columns.append(column)
            names[i] = name
        node[alive] = names[which.reshape(-1)]
        if len(columns) * states > MAX_CELLS:
            raise InputError(
                f"{param} is too large: more than {MAX_CELLS} moves.", hint="Ask for less at once.", param=param
            )
    used, class_of = np.unique(node, return_inverse=True)
    kept = [columns[name] for name in used.tolist() if name >= 0]
    shift = int(used[0] == -1) if len(used) else 0
    table_of = np.stack(kept) if kept else np.empty((0, states + 1), dtype=np.int16)
    return table_of, (class_of.reshape(-1) - shift).astype(np.int32)
