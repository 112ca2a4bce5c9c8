"""Temporal voting: the answer that a run's predictions agreed on over time, not only the last one.

Time Is a Feature, arXiv:2508.09138. Step t of T is read as if all its proposals were committed. A parser finds the
answer in that text. The answer gets the weight w(t): 1 (fixed), (t + 1) / T (linear) or exp(alpha t / T) (exp). The
highest total wins; among equals the one found first. Works on any strategy's trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starr.decode.text import until_end
from starr.decode.trace import Trace
from starr.errors import InputError, did_you_mean

WEIGHTS: dict[str, Callable[[int, int, float], float]] = {
    "fixed": lambda step, steps, alpha: 1.0,
    "linear": lambda step, steps, alpha: (step + 1) / steps,
    "exp": lambda step, steps, alpha: math.exp(alpha * step / steps),
}


@dataclass(frozen=True, slots=True)
class Vote:
    """The answer with the largest total (None if no step had one), every answer's total, and what each step said."""

    answer: str | None
    totals: dict[str, float]
    answers: list[str | None]


def vote(
    trace: Trace | Mapping[str, Any],
    parse: Callable[[str], str | None],
    *,
    weights: str = "exp",
    alpha: float = 5.0,
    ends: Collection[int] = (),
    decode: Callable[[list[int]], str] | None = None,
) -> Vote:
    """Vote on an answer over the steps of a trace (or of a trace file as read).

    ``parse`` finds the answer in a text, None if there is none. ``ends`` are the tokens that end a text, as in
    ``model.spec.eos_ids``. ``decode`` makes text of tokens; without it the trace's own pieces are joined.
    """
    if weights not in WEIGHTS:
        raise InputError(f"Unknown weights {weights!r}.", hint=did_you_mean(weights, WEIGHTS), param="weights")
    body = trace.to_dict() if isinstance(trace, Trace) else trace
    read = decode or (lambda tokens: "".join(body["pieces"].get(str(token), "") for token in tokens))
    answers = [parse(read(tokens)) for tokens in predictions(body, ends)]
    totals: dict[str, float] = {}
    for step, answer in enumerate(answers):
        if answer is not None:
            totals[answer] = totals.get(answer, 0.0) + WEIGHTS[weights](step, len(answers), alpha)
    return Vote(max(totals, key=totals.__getitem__, default=None), totals, answers)


def predictions(body: Mapping[str, Any], ends: Collection[int]) -> Iterator[list[int]]:
    """At every step, the tokens from the canvas's start to the window's end, cut before the first end-of-text.

    What lies before the window is settled and read from the end of the run; what lies after it has no proposals yet.
    """
    for step in body["steps"]:
        start = step["window"][0]
        guess = [p if m else t for t, m, p in zip(step["tokens"], step["masked"], step["proposal"], strict=True)]
        yield until_end([*body["tokens"][:start], *guess], ends)
