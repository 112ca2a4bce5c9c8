"""LLaDA's low-confidence remasking: the most confident first, one per step or as scheduled."""

import starr
from tests.decode.strategies.views import chosen, one_row


def test_one_per_step_or_an_even_share():
    view = one_row([0.5, 0.9, 0.7, 0.9])
    assert chosen(starr.strategy("confidence"), view) == [1]
    assert chosen(starr.strategy("confidence:steps=2"), view) == [1, 3]
