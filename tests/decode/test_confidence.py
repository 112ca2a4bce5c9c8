"""Scores over confidences: the paper's weights, the residual, the grid."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from starr.decode.confidence import (
    log_odds,
    neighbour_mean,
    neighbour_weights,
    on_grid,
    on_small_grid,
    part_of,
    resolved,
    temporal_variance,
    unsaturated,
)


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


@given(st.lists(st.floats(0.0, 2.0, width=32), min_size=2, max_size=50))
def test_small_values_keep_their_order_and_a_relative_precision(values):
    value = torch.tensor(sorted(values))
    found = on_small_grid(value)
    assert (found.diff() >= 0).all()
    assert ((found - value).abs() <= torch.where(value < 2.0**-5, value * 2.0**-11, 2.0**-17) + 1e-38).all()
    above = value >= 2.0**-5
    assert torch.equal(found[above], on_grid(value)[above])


@given(st.lists(st.floats(1e-12, 0.9), min_size=1, max_size=50))
def test_confidences_near_one_are_read_from_their_odds(rests):
    """``rest`` is 1 - confidence: where a grid of 2^-16 has lost it, it is known to one part in a thousand."""
    rest = torch.tensor(rests, dtype=torch.float64)
    confidence = on_grid(1.0 - rest).float()
    found = 1.0 - resolved(confidence, unsaturated(confidence, log_odds((rest / (1.0 - rest)).float())))
    near = confidence >= 1.0 - 2.0**-6
    assert ((found - rest).abs()[near] <= rest[near] * 2.0**-10 + 2.0**-40).all()
    assert torch.equal(found[~near], 1.0 - confidence.double()[~near])
