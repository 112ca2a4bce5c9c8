"""The temporal part (Eq. 2 and 5) by hand."""

import torch

from starr.decode.strategies.starr.temporal import empty_history, remember, temporal_threshold


def threshold(now: float, past: list[float], kind: str = "signed") -> float:
    history = empty_history(torch.zeros(1, 1), 3)
    for value in past:
        history = remember(history, torch.tensor([[value]]))
    return round(float(temporal_threshold(torch.tensor([[now]]), history, scale=3.0, warmup=0.9, kind=kind)), 6)


def test_the_warm_up_lasts_until_the_history_is_full():
    assert threshold(0.5, []) == threshold(0.5, [0.1, 0.2]) == 0.9
    assert threshold(0.5, [0.5, 0.5, 0.5]) != 0.9


def test_it_is_three_times_the_signed_residual():
    assert threshold(0.75, [0.5, 0.5, 0.5]) == 0.75
    assert threshold(0.25, [0.5, 0.5, 0.5]) == -0.75, "falling confidence makes it negative"
    assert threshold(0.25, [0.5, 0.5, 0.5], "absolute") == 0.75
    assert threshold(0.25, [0.5, 0.5, 0.5], "positive") == 0.0


def test_only_the_last_values_count():
    assert threshold(0.5, [0.0, 0.5, 0.5, 0.5]) == threshold(0.5, [0.5, 0.5, 0.5])
    assert threshold(0.5, [0.2, 0.3, 0.4]) != threshold(0.5, [0.4, 0.3, 0.4])
