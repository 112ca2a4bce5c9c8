"""Scores over confidences: the paper's weights, the residual, the grid."""

import pytest
import torch

from starr.decode.confidence import neighbour_mean, neighbour_weights, on_grid, part_of, temporal_variance


@pytest.mark.parametrize("window", range(1, 9))
def test_weights_of_both_sides_sum_to_one(window):
    assert 2 * sum(neighbour_weights(window)) == 1.0


def test_window_three_has_the_papers_weights():
    assert neighbour_weights(3) == (0.25, 0.125, 0.125)
    field = torch.tensor([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    mean = neighbour_mean(field, 3, (0.0, 0.0))[0].tolist()
    assert mean == [0.125, 0.125, 0.25, 0.0, 0.25, 0.125, 0.125], "the position itself is left out"


def test_edges_take_the_pads():
    assert neighbour_mean(torch.zeros(1, 1), 3, (1.0, 0.0)).item() == 0.5


def test_the_residual_is_unknown_until_the_history_is_full():
    history = torch.tensor([[[0.5, 0.25], [torch.nan, 0.25]]])
    found = temporal_variance(torch.tensor([[1.0, 1.0]]), history)
    assert found[0, 0] == 0.625
    assert found[0, 1].isnan()


def test_grid_and_parts():
    assert float(on_grid(torch.tensor(0.3))) * 2**16 == round(0.3 * 2**16)
    value = torch.tensor([-1.0, 2.0])
    assert [part_of(value, kind).tolist() for kind in ("signed", "positive", "absolute")] == [[-1, 2], [0, 2], [1, 2]]
