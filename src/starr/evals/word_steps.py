"""The arithmetic of ``word-problems``: which step kinds follow one another, and their numbers.

A problem follows one amount (the *focus*) through its steps; a comparison gives a second person an amount of their own
and moves the focus there. All numbers stay in 2..200, products and quotients in the tables up to 10 or doubling, and
the sums of two people's amounts below 61: a small model needs to see every pair of long numbers often.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from starr.evals.problem import held_out

CHANGES = ("gain", "lose", "times", "split")
COMPARISONS = ("more", "fewer", "multiple")
SIGNS = {
    "bags": "*", "gain": "+", "lose": "-", "times": "*", "split": "/", "more": "+", "fewer": "-", "multiple": "*",
    "sell": "*", "share": "/", "total": "+", "diff": "-",
}  # fmt: skip
STEP_COUNTS = (2,) * 30 + (3,) * 28 + (4,) * 20 + (5,) * 13 + (6,) * 9
LARGEST = {"total": 60, "diff": 60, "bags": 100, "sell": 200}  # number of a step, 99 for the others
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
        return f"{self.left} {SIGNS[self.kind]} {self.right} = {self.result}"


def draw_kinds(rng: Random, split: str, counts: tuple[int, ...] = STEP_COUNTS) -> list[str]:
    """A sequence of step kinds of the split: one in five sequences (by hash) belongs to the test split only."""
    count = rng.choice(counts)
    while True:
        first = ["bags"] if rng.random() < 0.4 else []
        last = rng.choice(([], [], [], ["total"], ["total"], ["diff"], ["sell"], ["share"]))
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


def draw_steps(rng: Random, kinds: list[str]) -> list[Step] | None:
    """Numbers for ``kinds``, or None when an amount on the way does not allow the next kind."""
    steps: list[Step] = []
    amount, first, second = rng.randint(3, 40), 0, False
    for kind in kinds:
        if kind == "bags":
            amount = rng.randint(2, 10)
        if kind in COMPARISONS:
            first, second = amount, True
        pair = (amount, first) if kind in ("total", "diff") else (amount, draw_operand(rng, kind, amount))
        left, right = order(kind, *pair)
        result = compute(kind, left, right)
        if not (right >= 2 and result >= 2 and max(left, result) <= LARGEST.get(kind, 99)):
            return None
        steps.append(Step(kind, left, right, result, second))
        amount = result
    return steps


def order(kind: str, left: int, right: int) -> tuple[int, int]:
    """A difference starts with the larger number, a total with the first person's."""
    if kind == "diff":
        return max(left, right), min(left, right)
    return (right, left) if kind == "total" else (left, right)


def draw_operand(rng: Random, kind: str, amount: int) -> int:
    """The second number of a step, 0 when the amount does not allow the kind."""
    sign = SIGNS[kind]
    if sign == "+":
        return rng.randint(2, 9)
    if sign == "-":
        return rng.randint(2, min(9, amount - 1)) if amount > 3 else 0
    if sign == "*":
        return rng.randint(2, 9) if amount <= 10 else 2 if amount <= 25 else 0
    divisors = [d for d in range(2, 10) if amount % d == 0 and 2 <= amount // d <= (25 if d == 2 else 10)]
    return rng.choice(divisors) if divisors else 0


def compute(kind: str, left: int, right: int) -> int:
    """The step's result; 0 stands for an operand that is not allowed."""
    if right < 2:
        return 0
    return {"+": left + right, "-": left - right, "*": left * right, "/": left // right}[SIGNS[kind]]
