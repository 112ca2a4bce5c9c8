"""Random order: by the noise of seed, step and position alone."""

import starr
from tests.decode.strategies.views import chosen, one_row


def test_noise_decides_and_confidence_does_not():
    for confidence in ([0.9, 0.1, 0.1], [0.1, 0.1, 0.9]):
        assert chosen(starr.strategy("random"), one_row(confidence, noise=[0.2, 0.8, 0.5])) == [1]
