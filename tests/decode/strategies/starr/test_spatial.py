"""The spatial part (Eq. 3 and 6) by hand: confident neighbours move the threshold."""

import torch

from starr.decode.strategies.starr.spatial import spatial_threshold
from tests.decode.strategies.views import one_row


def threshold(confidence: list[float], **more) -> list[float]:
    view, score = one_row(confidence), torch.tensor([confidence])
    options = {"window": 1, "pads": (0.0, 0.0), "kind": "signed"} | more
    return [round(float(v), 6) for v in spatial_threshold(view, score, **options)[0]]


def test_a_mask_is_compared_with_one_minus_its_deviance():
    assert threshold([0.25, 0.5, 0.75], kind="signed")[1] == 1.0
    assert threshold([0.25, 0.75, 0.25])[1] == 0.5
    assert threshold([0.75, 0.25, 0.75])[1] == 1.5
    assert threshold([0.75, 0.25, 0.75], kind="absolute")[1] == 0.5


def test_far_positions_play_no_part():
    assert threshold([0.1, 0.5, 0.5, 0.5, 0.1])[2] == threshold([0.9, 0.5, 0.5, 0.5, 0.9])[2]
    assert threshold([0.1, 0.5, 0.5, 0.5, 0.1], window=2)[2] != threshold([0.9, 0.5, 0.5, 0.5, 0.9], window=2)[2]
