"""Several commits of one step, made to go together.

Each proposal alone is allowed; two together need not be. ``by_confidence`` takes them one after another, the surest
first, and drops what the ones before it rule out. ``best_path`` chooses all tokens at once: of the strings that the
automaton takes, the one whose chosen positions have the largest product of probabilities (DINGO, arXiv:2505.23061).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from starr.decode.extras.constraints.automaton import ENDING, Automaton, Bools, Ints
from starr.decode.extras.constraints.reach import GOES_ON, Walk

Floats = NDArray[np.float64]


def by_confidence(walk: Walk, wanted: Sequence[tuple[int, int]]) -> list[bool]:
    """Which of the wanted (position, class), surest first, are done; the walk becomes that of the canvas with them."""
    kept = []
    for place, token_class in wanted:
        fits = walk.allows(place, token_class)
        if fits:
            walk.fill(place, token_class)
        kept.append(fits)
    return kept


def best_path(walk: Walk, scores: Mapping[int, Floats]) -> dict[int, int]:
    """The class of every position of ``scores`` (position: log-probability of each class, (K,)), chosen together.

    Viterbi over states, from those that the walk can end well. A position without a score holds what it holds, or any
    token at no cost where it is a mask. Ties go to the lower state, then the lower class.
    """
    automaton, sets = walk.reach.automaton, walk.reach.sets
    best = np.where(sets[walk.before[0]], 0.0, -np.inf)
    trail: list[Ints] = []
    costs = [cost_of(automaton, symbol, scores.get(place)) for place, symbol in enumerate(walk.symbols)]
    for place, cost in enumerate(costs):
        best, came_by = onward(automaton, best, cost, sets[walk.behind[place + 1]])
        trail.append(came_by)
    states, classes, _ = automaton.ways
    state, chosen = int(best.argmax()), {}
    for place in range(len(costs) - 1, -1, -1):
        way = trail[place][state]
        chosen[place], state = int(classes[way]), int(states[way])
    return {place: chosen[place] for place in scores}


def cost_of(automaton: Automaton, symbol: int, score: Floats | None) -> Floats:
    """(K,): what each class adds at a position."""
    if score is None and symbol >= 0:
        only = np.full(automaton.classes, -np.inf)
        only[symbol] = 0.0
        return only
    cost = np.zeros(automaton.classes) if score is None else score.astype(np.float64)
    if symbol == GOES_ON:
        cost = cost.copy()
        cost[ENDING] = -np.inf
    return cost


def onward(automaton: Automaton, best: Floats, cost: Floats, rest: Bools) -> tuple[Floats, Ints]:
    """The best total of every state one position on, and the way (of ``Automaton.ways``) that it came by."""
    states, classes, goals = automaton.ways
    total = best[states] + cost[classes]
    total[~rest[goals]] = -np.inf
    starts = np.flatnonzero(np.diff(goals, prepend=-1))
    tops = np.maximum.reduceat(total, starts)
    found = np.full(len(best), -np.inf)
    found[goals[starts]] = tops
    winners = np.flatnonzero((total == found[goals]) & (total > -np.inf))[::-1]
    came_by = np.zeros(len(best), dtype=np.int32)
    came_by[goals[winners]] = winners  # the first of equals is written last
    return found, came_by
