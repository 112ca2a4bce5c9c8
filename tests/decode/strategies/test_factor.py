"""Fast-dLLM's factor rule by hand: (n + 1)(1 - c_n) < f for the n-th best."""

import starr
from tests.decode.strategies.views import chosen, one_row


def test_ranks_are_judged_one_by_one():
    view = one_row([0.9, 0.6, 0.8])
    assert chosen(starr.strategy("factor:factor=0.5"), view) == [0]
    assert chosen(starr.strategy("factor:factor=1.0"), view) == [0, 2]
    assert chosen(starr.strategy("factor:factor=2.0"), view) == [0, 1, 2]
