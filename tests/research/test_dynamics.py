"""Patterns and zones on hand-made trajectories and traces."""

import numpy as np
import pytest

from starr.errors import LoadError
from starr.research.dynamics import (
    Cuts,
    analyse,
    spatial_deviance,
    spatial_pattern,
    temporal_pattern,
    temporal_patterns,
    temporal_residual,
    tokens_of,
    turns,
)


@pytest.mark.parametrize(
    ("values", "pattern"),
    [
        ([0.30, 0.32, 0.31, 0.33, 0.30], "stable"),
        ([0.95, 0.96, 0.97, 0.98, 0.98], "stable"),
        ([0.20, 0.22, 0.60, 0.90, 0.91], "surge"),
        ([0.20, 0.10, 0.15, 0.70, 0.72], "surge"),
        ([0.20, 0.60, 0.30, 0.70, 0.20], "fluctuation"),
        ([0.50, 0.30, 0.45, 0.30, 0.30], "fluctuation"),
        ([0.90, 0.80, 0.60, 0.50, 0.40], "other"),
        ([0.20, 0.25, 0.30, 0.35, 0.40], "other"),
    ],
)
def test_temporal_patterns(values, pattern):
    assert temporal_pattern(values, Cuts()) == pattern


@pytest.mark.parametrize(
    ("values", "count"),
    [([0, 1, 0, 1], 2), ([0, 0.05, 0, 0.05], 0), ([0, 1, 2, 3], 0), ([0, 0.3, 0.25, 0.6], 0), ([1, 0.5, 0.9], 1)],
)
def test_turns_ignore_short_legs(values, count):
    assert turns(values, 0.1) == count


def test_every_span_is_judged_and_short_lives_once():
    assert len(temporal_patterns([0.1] * 9, Cuts(span=5))) == 5
    assert temporal_patterns([0.1, 0.1], Cuts(span=5)) == ("stable",)


def test_residual_is_equation_2():
    values = np.array([0.1, 0.4, 0.7, 0.2, 0.9])
    expected = [values[t] - values[t - 3 : t].mean() for t in (3, 4)]
    assert temporal_residual(values, 3) == pytest.approx(expected)
    assert len(temporal_residual(values[:3], 3)) == 0


def test_deviance_is_equation_3_with_the_papers_pads():
    flat = spatial_deviance(np.full(9, 0.4), 3)
    assert flat[4] == pytest.approx(0)
    assert flat[0] == pytest.approx(0.4 - (0.5 * 1 + 0.5 * 0.4))
    assert flat[-1] == pytest.approx(0.4 - 0.5 * 0.4)


def test_outliers_have_a_side():
    assert [spatial_pattern(d, Cuts()) for d in (0.1, 0.5, -0.5)] == ["consistent", "anchor", "laggard"]


def made_trace(matrix, tokens=None, queried=None):
    """A trace whose confidences are the rows of a matrix."""
    length = len(matrix[0])
    steps = [
        {"step": t, "window": [0, length], "confidence": list(row), "masked": [True] * length, "tokens": [1] * length,
         "action": [0] * length, "queried": [1] * length if queried is None else queried[t]}
        for t, row in enumerate(matrix)
    ]  # fmt: skip
    return {"length": length, "steps": steps, "tokens": list(range(length)), "stats": {"tokens": tokens or length},
            "pieces": {str(i): f"t{i}" for i in range(length)}}  # fmt: skip


def test_shares_and_zones_of_a_made_trace():
    rng = np.random.default_rng(0)
    steps, length = 30, 20
    field = np.full((steps, length), 0.9)
    field[:, 5] = 0.1  # stands still below its neighbours: stall
    field[:, 15] = np.tile([0.95, 0.6], steps // 2)  # never settles
    field += rng.uniform(-0.01, 0.01, field.shape)
    found = analyse([made_trace(field)])
    zone = {token.position: name for token, name in zip(found.tokens, found.zone_of, strict=True)}
    assert zone[5] == "stall"
    assert zone[15] in ("erratic", "both")
    assert set(found.tokens[15].patterns) == {"fluctuation"}
    assert found.temporal["stable"] == 19 * 26
    assert found.spatial["laggard"] >= steps
    assert found.temporal.total() == length * 26
    assert 0 <= found.when["stable"] <= 1


def test_only_text_and_fresh_confidences_count():
    field = np.full((6, 8), 0.5)
    queried = [[1] * 8] * 3 + [[1, 0] * 4] * 3
    tokens = tokens_of(0, made_trace(field, tokens=4, queried=queried), Cuts())
    assert [t.position for t in tokens] == [0, 1, 2, 3]
    assert [len(t.steps) for t in tokens] == [6, 3, 6, 3]
    assert tokens[2].piece == "t2"


def test_no_text_is_one_line():
    trace = made_trace(np.full((2, 3), 0.5)) | {"stats": {"tokens": 0}}
    with pytest.raises(LoadError):
        analyse([trace])
