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

MOST_CELLS = 1 << 23  # states times classes
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
        """Equal for equal vocabularies."""
        mark = hashlib.sha256(repr((self.size, self.ends)).encode())
        for part in (self.ids, self.lengths, self.letters):
            mark.update(part.tobytes())
        return mark.hexdigest()


def spelling_of(tokens: Sequence[bytes], ends: Sequence[int]) -> Spelling:
    """``tokens[i]`` are the bytes of token i; empty where it may not occur in an answer (special tokens)."""
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
        """Without DEAD."""
        return len(self.moves) - 1

    @property
    def classes(self) -> int:
        return int(self.moves.shape[1])

    @property
    def nbytes(self) -> int:
        """About what it takes, with the edges and ways that follow from it."""
        return self.moves.nbytes + self.class_of.nbytes + len(self.moves) ** 2 + 12 * self.live

    @cached_property
    def live(self) -> int:
        """How many moves do not lead to DEAD."""
        return int((self.moves != self.states).sum())

    @cached_property
    def edges(self) -> Bools:
        """(S + 2, S + 2): some token leads from one state to the other; DEAD has no edges."""
        found = np.zeros((self.states + 1,) * 2, dtype=bool)
        found[np.arange(self.states + 1)[:, None], self.moves] = True
        found[:, -1] = False
        return found

    @cached_property
    def ways(self) -> tuple[Ints, Ints, Ints]:
        """Every move that does not lead to DEAD, as (state, class, next state), sorted by next state, state, class."""
        state, kind = np.nonzero(self.moves != self.states)
        goal = self.moves[state, kind]
        order = np.argsort(goal, kind="stable")
        return tuple(part[order].astype(np.int32) for part in (state, kind, goal))  # type: ignore[return-value]

    @cached_property
    def first_ways(self) -> Longs:
        """Where in ``ways`` each next state begins."""
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


def minimal(table: Ints, start: int, final: Bools) -> tuple[Ints, int, Bools]:
    """A small automaton of the same language (S + 1, 256), DEAD its last state: states that act alike are merged.

    ``table`` has -1 for none, and its last row is DEAD. States are told apart by hashes of what they lead to, round by
    round (Moore); where that does not end soon, only the states that can end are kept.
    """
    table = np.where(table < 0, len(table) - 1, table)
    letters = np.unique(table, axis=1)  # bytes that act alike do not tell states apart
    weights = np.random.default_rng(0).integers(1, 1 << 62, letters.shape[1] + 1, dtype=np.uint64) | np.uint64(1)
    group = np.unique(distance(letters, final), return_inverse=True)[1].reshape(-1)
    for _ in range(ROUNDS):
        seen = group.astype(np.uint64) * weights[0] + (group[letters].astype(np.uint64) * weights[1:]).sum(axis=1)
        _, first, new = np.unique(seen, return_index=True, return_inverse=True)
        done, group = len(first) == group.max() + 1, new.reshape(-1)
        if done and (group[table] == group[table[first]][group]).all():
            return renamed(table, start, final, group)
    dead = distance(letters, final) < 0
    return renamed(table, start, final, np.where(dead, len(table), np.arange(len(table))).astype(np.int64))


def distance(letters: Ints, final: Bools) -> Longs:
    """(S + 1,): bytes of the shortest way to a final state, -1 where there is none; the last state is DEAD."""
    states, letter = np.nonzero(letters != len(letters) - 1)
    goals = letters[states, letter]
    order = np.argsort(goals, kind="stable")
    sources, starts = states[order], np.searchsorted(goals[order], np.arange(len(letters) + 1))
    found = np.where(final, 0, -1).astype(np.int64)
    front, count = np.flatnonzero(final), 0
    while len(front):
        count += 1
        near = np.concatenate([sources[starts[state] : starts[state + 1]] for state in front.tolist()])
        front = np.unique(near[found[near] < 0])
        found[front] = count
    return found


def renamed(table: Ints, start: int, final: Bools, group: Longs) -> tuple[Ints, int, Bools]:
    """One state for each group, that of DEAD last."""
    names, first, which = np.unique(group, return_index=True, return_inverse=True)
    group = which.reshape(-1)
    rank = np.arange(len(names))
    dead = group[-1]
    rank = np.where(rank < dead, rank, rank - 1)
    rank[dead] = len(names) - 1
    order = np.argsort(rank)
    return rank[group[table[first]]][order].astype(np.int32), int(rank[group[start]]), final[first][order]


def lift(table: Ints, start: int, final: Bools, spelling: Spelling, param: str) -> Automaton:
    """The automaton over tokens of a minimal one over bytes (S + 1, 256), whose last state is DEAD."""
    states = len(table) - 1
    columns, node_of = walk(table, spelling, param)
    dead, end = states + 1, states
    moves = np.full((states + 2, len(columns) + 2), dead, dtype=np.int16)
    moves[:states, 2:] = np.where(columns[:, :-1] == states, dead, columns[:, :-1]).T
    moves[:states, ENDING][final[:-1]] = end
    moves[end, ENDING] = end
    class_of = np.full(spelling.size, NOWHERE, dtype=np.int32)
    class_of[spelling.ids] = np.where(node_of < 0, NOWHERE, node_of + 2)
    class_of[list(spelling.ends)] = ENDING
    return Automaton(moves, class_of, start, np.concatenate([final[:-1], [True, False]]))


def walk(table: Ints, spelling: Spelling, param: str) -> tuple[NDArray[np.int16], Ints]:
    """Where every token leads from every state: distinct columns (K, S + 1), and each token's (T,), -1 for nowhere.

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
    for place in range(int(spelling.lengths[0]) if len(node) else 0):
        alive = alive[(spelling.lengths[alive] > place) & (node[alive] >= 0)]
        if not len(alive):
            break
        letter = letter_of[spelling.letters[spelling.starts[alive] + place]]
        pairs, which = np.unique(node[alive] * letters.shape[1] + letter, return_inverse=True)
        before, taken = np.divmod(pairs, letters.shape[1])
        names = np.empty(len(pairs), dtype=np.int64)
        for i, (old, step) in enumerate(zip(before.tolist(), taken.tolist(), strict=True)):
            column = letters[columns[old], step].astype(np.int16)
            name = known.setdefault(column.tobytes(), len(columns))
            if name == len(columns):
                columns.append(column)
            names[i] = name
        node[alive] = names[which.reshape(-1)]
        if len(columns) * states > MOST_CELLS:
            raise InputError(
                f"{param} is too large: more than {MOST_CELLS} moves.", hint="Ask for less at once.", param=param
            )
    used, class_of = np.unique(node, return_inverse=True)
    kept = [columns[name] for name in used.tolist() if name >= 0]
    shift = int(used[0] == -1) if len(used) else 0
    table_of = np.stack(kept) if kept else np.empty((0, states + 1), dtype=np.int16)
    return table_of, (class_of.reshape(-1) - shift).astype(np.int32)
