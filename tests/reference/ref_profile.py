"""Fast-dLLM++'s Fréchet profile and DMax's commit rule for one row, position by position, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

from tests.decode.strategies.driver import Row
from tests.reference.ref_baselines import Ref, ranked


class RefProfile(Ref):
    def __init__(self, delta: float) -> None:
        self.delta = Fraction(delta)

    def chosen(self, row: Row) -> list[int]:
        order = ranked(row.confidence, row.masked)
        fits = [n for n in range(1, len(order) + 1) if self.gain(row, order[:n]) > self.delta]
        return order[: max(fits, default=1)]

    def gain(self, row: Row, prefix: list[int]) -> Fraction:
        """G_n = L_n - U_n, with L_n = max(0, sum of c - (n - 1)) and U_n = 1 - the least c."""
        confidence = [Fraction(row.confidence[i]) for i in prefix]
        return max(Fraction(0), sum(confidence) - (len(prefix) - 1)) - (1 - confidence[-1])


class RefLeftmost(Ref):
    def __init__(self, tau: float) -> None:
        self.tau = tau

    def chosen(self, row: Row) -> list[int]:
        masks = [i for i, masked in enumerate(row.masked) if masked]
        sure: list[int] = []
        for i in masks:
            if row.confidence[i] < self.tau:
                break
            sure.append(i)
        return sure or masks[:1]
