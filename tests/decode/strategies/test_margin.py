"""Ranked by the distance between the two best tokens, not by the best alone."""

import starr
from tests.decode.strategies.views import chosen, one_row


def test_the_widest_margin_comes_first():
    view = one_row([0.9, 0.5, 0.6], margin=[0.1, 0.4, 0.3])
    assert chosen(starr.strategy("margin"), view) == [1]
