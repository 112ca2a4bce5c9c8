"""A reference without memory for ``driver.compare``: a function from a row to the fields of a ``Word``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.decode.strategies.driver import Row, Word


class Stateless:
    def __init__(self, rule: Callable[..., dict[str, Any]], **options: Any) -> None:
        self.rule, self.options = rule, options

    def open(self) -> None:
        pass

    def step(self, row: Row) -> Word:
        return Word(**self.rule(row, **self.options))
