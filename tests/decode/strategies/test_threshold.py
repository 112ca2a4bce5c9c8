"""Fast-dLLM's threshold by hand: at least tau, and always the best."""

import starr
from tests.decode.strategies.views import chosen, one_row


def test_at_least_tau_and_never_nothing():
    assert chosen(starr.strategy("threshold:tau=0.5"), one_row([0.5, 0.4, 0.9])) == [0, 2]
    assert chosen(starr.strategy("threshold:tau=0.95"), one_row([0.5, 0.4, 0.9])) == [2]
    assert chosen(starr.strategy("threshold:tau=2"), one_row([0.3, 0.3])) == [0], "ties go left"
    assert chosen(starr.strategy("threshold:tau=0.5"), one_row([0.9, 0.1, 0.2], held=(0,))) == [2]
