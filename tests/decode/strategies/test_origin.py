"""Dream's origin, by hand."""

import starr
from tests.decode.strategies.views import chosen, one_row


def test_each_mask_has_its_own_chance():
    view = one_row([0.9, 0.1, 0.5, 0.5], step=0, noise=[0.6, 0.4, 0.1, 0.7])
    assert chosen(starr.strategy("origin:steps=2"), view) == [1, 2], "1 - s / t is 0.4995"


def test_where_nothing_is_drawn_the_least_noise_is():
    view = one_row([0.9, 0.1, 0.5, 0.5], step=0, noise=[0.6, 0.4, 0.3, 0.7])
    assert chosen(starr.strategy("origin"), view) == [2], "1 - s / t is 0.24975"


def test_the_last_step_commits_all():
    view = one_row([0.9, 0.1, 0.5, 0.5], step=1, noise=[0.999] * 4)
    assert chosen(starr.strategy("origin:steps=2"), view) == [0, 1, 2, 3]
