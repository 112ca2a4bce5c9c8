"""Several commits of one step, made to go together.

Each proposal alone is allowed; two together need not be. ``by_confidence`` takes them one after another, the surest
first, and drops what the ones before it rule out. ``best_path`` chooses all tokens at once: of the strings that the
automaton takes, the one whose chosen positions have the largest product of probabilities (DINGO, arXiv:2505.23061).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from starr.decode.extras.constraints.automaton import ENDING, Automaton
from starr.decode.extras.constraints.reach import GOES_ON, Walk

MOST_REPAIRS = 1 << 26  # states times positions that the commits of one step look at: some tenths of a second
Floats = NDArray[np.float64]


def by_confidence(walk: Walk, wanted: Sequence[tuple[int, int]]) -> list[bool]:
    """Which of the wanted (position, class), surest first, are done; the walk becomes that of the canvas with them.

    Where an automaton counts, every commit changes the walks all over the canvas. When the step has looked at many
    positions, the other commits wait for the next one, so that no row holds up those beside it.
    """
    kept: list[bool] = []
    left = MOST_REPAIRS // walk.reach.automaton.states
    for place, token_class in wanted:
        fits = (left > 0 or not any(kept)) and walk.allows(place, token_class)
        if fits:
            left -= walk.fill(place, token_class)
        kept.append(fits)
    return kept


def best_path(walk: Walk, scores: Mapping[int, Floats]) -> dict[int, int]:
    """The class of every position of ``scores`` (position: log-probability of each class, (K,)), chosen together.

    Viterbi over states, from those that the walk can end well. A position without a score holds what it holds, or any
    token at no cost where it is a mask. Ties go to the lower state, then the lower class.
    """
    automaton, sets = walk.reach.automaton, walk.reach.sets
    costs = [cost_of(automaton, symbol, scores.get(place)) for place, symbol in enumerate(walk.symbols)]
    totals = [np.where(sets[walk.before[0]], 0.0, -np.inf)]
    for place, cost in enumerate(costs):
        known = walk.symbols[place] if walk.symbols[place] >= 0 and place not in scores else None
        found = onward(automaton, totals[-1], cost) if known is None else moved_on(automaton, totals[-1], known)
        found[~sets[walk.behind[place + 1]]] = -np.inf
        totals.append(found)
    state, chosen = int(totals[-1].argmax()), {}
    for place in range(len(costs) - 1, -1, -1):
        state, chosen[place] = came_by(automaton, totals[place], costs[place], state)
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


def onward(automaton: Automaton, best: Floats, cost: Floats) -> Floats:
    """The best total of every state one position on."""
    states, classes, goals = automaton.ways
    found = np.full(len(best), -np.inf)
    starts = automaton.first_ways
    found[goals[starts]] = np.maximum.reduceat(best[states] + cost[classes], starts)
    return found


def moved_on(automaton: Automaton, best: Floats, symbol: int) -> Floats:
    """The same behind a position that holds a token."""
    found = np.full(len(best), -np.inf)
    np.maximum.at(found, automaton.moves[:, symbol], best)
    return found


def came_by(automaton: Automaton, best: Floats, cost: Floats, state: int) -> tuple[int, int]:
    """The state before, and the class of the token, by which the best total of a state came."""
    states, classes, goals = automaton.ways
    first, last = np.searchsorted(goals, [state, state + 1])
    way = first + int((best[states[first:last]] + cost[classes[first:last]]).argmax())
    return int(states[way]), int(classes[way])
