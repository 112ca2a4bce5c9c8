"""The strategy contract: defaults that a class need not repeat."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from starr.decode.strategies.base import Strategy
from starr.errors import InputError
from starr.named import option
from tests.decode.strategies.views import one_row
from tests.tiny import tiny_model


@dataclass(frozen=True, kw_only=True)
class Plain(Strategy):
    """Nothing but a name and an option."""

    name: ClassVar[str] = "plain"
    paper: ClassVar[str] = "-"
    tau: float = option(0.5, "a number", low=0.0, high=1.0)


def test_defaults():
    strategy = Plain()
    assert strategy.bind(tiny_model()) is strategy
    assert (strategy.revokes(), strategy.needs(), strategy.begin(one_row([0.5]))) == (False, {}, {})
    assert (strategy.signals, strategy.keeps, strategy.scope) == (set(), set(), "block")
    with pytest.raises(NotImplementedError):
        strategy.decide(one_row([0.5]), {})


def test_options_are_checked_when_made():
    with pytest.raises(InputError, match=r"plain: tau must be within \[0, 1\], got 2"):
        Plain(tau=2)
