"""The operations that ``list-functions`` composes: how each is asked for, computed and written in Python.

``ask`` are its wordings, ``test`` (filters) or ``value`` (maps) is a Python expression over one element ``x``, and
``whole`` is one over the whole list ``xs``. ``{k}`` is the operation's number. The reference meaning is that
expression, so an answer and its tests cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Op:
    """One operation; exactly one of ``test``, ``value`` and ``whole`` is set. ``ends`` says that it returns no list."""

    name: str
    ask: tuple[str, ...]
    test: str = ""
    value: str = ""
    whole: str = ""
    low: int = 0
    high: int = 0
    ends: bool = False

    @property
    def kind(self) -> str:
        """What the operation does: filter, map, end or list."""
        return "filter" if self.test else "map" if self.value else "end" if self.ends else "list"


NUMBER_OPS = (
    Op("even", ("keeps the even numbers", "drops the odd numbers"), test="x % 2 == 0"),
    Op("odd", ("keeps the odd numbers", "drops the even numbers"), test="x % 2 == 1"),
    Op("above", ("keeps the numbers above {k}", "keeps only what is greater than {k}"), test="x > {k}", low=1, high=9),
    Op("below", ("keeps the numbers below {k}", "keeps only what is less than {k}"), test="x < {k}", low=2, high=9),
    Op(
        "divisible",
        ("keeps the multiples of {k}", "keeps what can be divided by {k}"),
        test="x % {k} == 0",
        low=3,
        high=7,
    ),
    Op("add", ("adds {k} to each", "makes each number {k} larger"), value="x + {k}", low=1, high=9),
    Op("subtract", ("takes {k} from each", "makes each number {k} smaller"), value="x - {k}", low=1, high=9),
    Op("multiply", ("multiplies each by {k}", "makes each number {k} times as large"), value="x * {k}", low=2, high=9),
    Op("square", ("squares each number", "multiplies each number by itself"), value="x * x"),
    Op("negate", ("changes the sign of each", "negates each number"), value="-x"),
)
LIST_OPS = (
    Op("reverse", ("reverses the list", "turns the list around"), whole="xs[::-1]"),
    Op("sort", ("sorts the list", "puts the list in order"), whole="sorted(xs)"),
    Op("first", ("takes the first {k}", "keeps only the first {k}"), whole="xs[:{k}]", low=2, high=4),
    Op("skip", ("drops the first {k}", "skips the first {k}"), whole="xs[{k}:]", low=1, high=3),
)
NUMBER_ENDS = (
    Op("sum", ("returns the sum", "adds them all up"), whole="sum(xs)", ends=True),
    Op("largest", ("returns the largest or 0", "gives the maximum or 0"), whole="max(xs, default=0)", ends=True),
    Op("smallest", ("returns the smallest or 0", "gives the minimum or 0"), whole="min(xs, default=0)", ends=True),
)
COUNT = Op("count", ("returns how many there are", "counts them"), whole="len(xs)", ends=True)
WORD_OPS = (
    Op("longer", ("keeps the words longer than {k}", "keeps only words with more than {k} letters"),
       test="len(x) > {k}", low=2, high=5),
    Op("upper", ("makes each word upper case", "writes each word in capitals"), value="x.upper()"),
    Op("backwards", ("reverses each word", "turns each word around"), value="x[::-1]"),
    Op("double", ("repeats each word", "writes each word twice"), value="x + x"),
)  # fmt: skip
JOIN = Op("join", ("joins the words", "puts the words together"), whole='" ".join(xs)', ends=True)

BY_NAME = {op.name: op for op in (*NUMBER_OPS, *LIST_OPS, *NUMBER_ENDS, COUNT, *WORD_OPS, JOIN)}


@dataclass(frozen=True)
class Chosen:
    """An operation with its number filled in."""

    op: Op
    k: int

    def fill(self, pattern: str) -> str:
        """A pattern with the operation's number in place."""
        return pattern.replace("{k}", str(self.k))
