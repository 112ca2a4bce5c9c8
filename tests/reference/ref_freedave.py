"""FreeDave, word for word: the static loop, and the loop with drafts, over one plain list of tokens.

``predict(tokens)`` gives a proposal and a score for every position; ``shares`` are the commits of each static step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Predict = Callable[[list[int]], tuple[list[int], list[float]]]


def filled(x: list[int], found: tuple[list[int], list[float]], places: range, mask: int, count: int) -> list[int]:
    """x with its ``count`` surest masks among ``places`` filled; ties go to the lower position."""
    tokens, scores = found
    masks = [i for i in places if x[i] == mask]
    best = sorted(masks, key=lambda i: (-scores[i], i))[:count]
    return [tokens[i] if i in best else token for i, token in enumerate(x)]


def static(x: list[int], predict: Predict, blocks: Sequence[range], mask: int, shares: Sequence[int]) -> tuple:
    """The text and its forwards."""
    forwards = 0
    for places in blocks:
        step = 0
        while any(x[i] == mask for i in places):
            x = filled(x, predict(x), places, mask, shares[step])
            forwards, step = forwards + 1, step + 1
    return x, forwards


def freedave(
    x: list[int], predict: Predict, blocks: Sequence[range], mask: int, shares: Sequence[int], drafts: int
) -> tuple:
    """The text, its forwards, and the rows of all forwards (drafts count)."""
    forwards, rows = 0, 0
    for places in blocks:
        if not any(x[i] == mask for i in places):
            continue
        step, found = 0, predict(x)
        forwards, rows = forwards + 1, rows + 1
        while any(x[i] == mask for i in places):
            states = []  # draft k: the next k static steps, all by the same prediction
            for k in range(1, drafts + 1):
                state = filled(x, found, places, mask, sum(shares[step : step + k]))
                if not states or state != states[-1]:
                    states.append(state)
            if not any(states[0][i] == mask for i in places):
                x = states[0]  # the last static step needs no forward
                break
            predictions = [predict(state) for state in states]  # in one forward
            forwards, rows = forwards + 1, rows + len(states)
            last = 0
            while last + 1 < len(states):
                target = filled(states[last], predictions[last], places, mask, shares[step + last + 1])
                if target != states[last + 1]:
                    break
                last += 1
            x, found, step = states[last], predictions[last], step + last + 1
    return x, forwards, rows
