"""The arithmetic of ``word-problems``: which step kinds follow one another, and their numbers.

A problem follows one amount (the *focus*) through its steps; a comparison gives a second person an amount of their own
and moves the focus there. Every amount has two digits and every other number one, so that a problem fixes how long its
answer is; the sums of two people's amounts stay below 61, since a small model needs to see every pair often. Training
also has problems of up to three steps with ``SMALL`` amounts, as people write them to try a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

from starr.evals.tasks.problem import held_out

CHANGES = ("gain", "lose", "times", "split")
COMPARISONS = ("more", "fewer", "multiple")
SIGNS = {
    "bags": "*", "gain": "+", "lose": "-", "times": "*", "split": "/", "more": "+", "fewer": "-", "multiple": "*",
    "sell": "*", "share": "/", "total": "+", "diff": "-",
}  # fmt: skip
TIERS = {"2-3": (2, 3), "4-5": (4, 5), "6-8": (6, 7, 8)}  # numbers of steps; each tier has a third of the problems
BOTH = ("total", "diff")  # steps over both people's amounts
LEAST, MOST, LARGEST_OF_TWO = 10, 99, 60  # an amount; one of a step over both
PLAIN, SMALL = (LEAST, MOST), (2, 30)  # ranges of amounts
HELD_OUT_ONE_IN = 5
# By hash every two-step total would be held out, and a third of the test with it: two of the three are trained.
TRAINED_ANYWAY = (["more", "total"], ["fewer", "total"])


@dataclass(frozen=True)
class Step:
    """``left sign right = result``; ``second`` says that the second person's amount is in focus after it."""

    kind: str
    left: int
    right: int
    result: int
    second: bool

    @property
    def equation(self) -> str:
        """The step as it is written."""
        return f"{self.left} {SIGNS[self.kind]} {self.right} = {self.result}"


def tier(count: int) -> str:
    """The tier of a number of steps; of one step, which only training has, the first."""
    return next((name for name, counts in TIERS.items() if count <= counts[-1]), "")


def draw_kinds(rng: Random, split: str, count: int) -> list[str]:
    """``count`` step kinds of the split: one in five sequences (by hash) belongs to the test split only.

    A single step is drawn for training only, and none of them is held out.
    """
    if count == 1:
        return [rng.choice((*CHANGES, *CHANGES, "bags", "sell", "share"))]
    while True:
        first = ["bags"] if rng.random() < 0.4 else []
        last = rng.choice(([], [], [], ["total"], ["diff"], ["sell"], ["share"]))
        middle = [rng.choice(CHANGES) for _ in range(count - len(first) - len(last))]
        if middle and (last in (["total"], ["diff"]) or rng.random() < 0.2):
            middle[rng.randrange(len(middle))] = rng.choice(COMPARISONS)
        kinds = first + middle + last
        if len(kinds) == count and is_sensible(kinds) and is_held_out(kinds) == (split == "test"):
            return kinds


def is_held_out(kinds: list[str]) -> bool:
    """Whether a sequence of step kinds belongs to the test split."""
    return held_out(kinds, HELD_OUT_ONE_IN) and kinds not in TRAINED_ANYWAY


def is_sensible(kinds: list[str]) -> bool:
    """Totals need a second person; a difference also needs a change after the comparison, or it was just told."""
    compared = [index for index, kind in enumerate(kinds) if kind in COMPARISONS]
    if kinds[-1] == "total":
        return bool(compared)
    if kinds[-1] == "diff":
        return bool(compared) and compared[0] < len(kinds) - 2
    return True


def draw_steps(rng: Random, kinds: list[str], amounts: tuple[int, int] = PLAIN) -> list[Step] | None:
    """Numbers for ``kinds``, or None when an amount on the way does not allow the next kind."""
    steps: list[Step] = []
    amount, first, second = rng.randint(amounts[0], 60 if amounts == PLAIN else 9), 0, False
    for kind in kinds:
        if kind == "bags":
            amount = rng.randint(2, 9)
        if kind in COMPARISONS:
            first, second = amount, True
        left, right = pair(kind, first, amount) if kind in BOTH else (amount, draw_operand(rng, kind, amount, amounts))
        if right is None:
            return None
        amount = compute(SIGNS[kind], left, right)
        steps.append(Step(kind, left, right, amount, second))
        if kind in BOTH and (max(left, amount) > LARGEST_OF_TWO or amount < amounts[0]):
            return None
    return steps


def pair(kind: str, first: int, second: int) -> tuple[int, int]:
    """The two people's amounts: a difference starts with the larger one, a total with the first person's."""
    return (max(first, second), min(first, second)) if kind == "diff" else (first, second)


def draw_operand(rng: Random, kind: str, amount: int, amounts: tuple[int, int]) -> int | None:
    """The second number of a step; None when the amount does not allow the kind."""
    allowed = operands(SIGNS[kind], amount, amounts)
    return rng.choice(allowed) if allowed else None


@cache
def operands(sign: str, amount: int, amounts: tuple[int, int]) -> tuple[int, ...]:
    """The numbers of one digit that lead to an amount of the range, divisions without remainder."""
    exact = (k for k in range(2, 10) if sign != "/" or amount % k == 0)
    return tuple(k for k in exact if amounts[0] <= compute(sign, amount, k) <= amounts[1])


def compute(sign: str, left: int, right: int) -> int:
    """The result of one step; division is whole."""
    return {"+": left + right, "-": left - right, "*": left * right, "/": left // right}[sign]
