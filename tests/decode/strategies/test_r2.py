"""R2-dLLM against its slow transcription, and its reduction to the plain threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.r2 import R2, follow
from starr.decode.strategies.threshold import Threshold
from tests.decode.strategies.driver import World, compare, play, same
from tests.reference.ref_r2 import RefR2

BAR = st.integers(4, 18).map(lambda n: n / 16)
OPTIONS = st.fixed_dictionaries(
    {
        "tau": BAR,
        "cluster": st.integers(1, 5),
        "decoded": st.integers(0, 3),
        "tau_cluster": BAR,
        "tau_run": BAR,
        "pick": st.sampled_from(["confident", "middle"]),
        "steps": st.integers(1, 4),
        "tau_steady": BAR,
        "steady": st.sampled_from(["last", "mean", "max"]),
    }
)
SEEDS, WIDTHS = st.integers(0, 2**31), st.lists(st.integers(1, 12), min_size=1, max_size=4)


@settings(deadline=None, max_examples=150)
@given(SEEDS, WIDTHS, st.booleans(), OPTIONS)
def test_equals_the_slow_transcription(seed, widths, coarse, options):
    compare(R2(**options), lambda: RefR2(**options), World(seed, widths, coarse))


@settings(deadline=None, max_examples=30)
@given(SEEDS, WIDTHS, BAR)
def test_thresholds_above_one_are_the_plain_threshold(seed, widths, tau):
    off = R2(tau=tau, tau_cluster=1.1, tau_run=1.1, tau_steady=1.1)
    assert same(play(off, World(seed, widths)), play(Threshold(tau=tau), World(seed, widths)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 1, 1, 1, 0, 0, 0]),  # the best, then the cluster 1..3 around it and its neighbour
        ({"tau_cluster": 1.1}, [1, 0, 1, 0, 0, 0, 0]),  # the best, and the surest of the equal tokens
        ({"tau_cluster": 1.1, "pick": "middle"}, [1, 0, 1, 0, 0, 0, 0]),
        ({"tau_cluster": 1.1, "tau_run": 0.875}, [1, 0, 0, 0, 0, 0, 0]),  # not above its own confidence
        ({"tau_cluster": 1.1, "tau_run": 1.1}, [1, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_each_part_by_hand(options, expected):
    world = World(0, [6])
    world.frozen = torch.tensor([[False] * 6 + [True]])
    world.masked = ~world.frozen
    view = replace(
        world.view(),
        proposal=torch.tensor([[1, 2, 2, 2, 3, 4, 0]]),
        confidence=torch.tensor([[0.95, 0.8125, 0.875, 0.8125, 0.5, 0.25, 0.0]]),
    )
    strategy = R2(**options)
    decision, _ = strategy.decide(view, strategy.begin(view))
    assert decision.action[0].tolist() == expected


def test_a_new_proposal_starts_a_new_record():
    world = World(0, [1])
    view = replace(world.view(), proposal=torch.tensor([[2, 0]]), confidence=torch.tensor([[0.25, 0.0]]))
    old = {"token": view.proposal, "equal": view.tokens + 3, "sum": view.confidence + 2, "max": view.confidence + 0.5}
    same_token = follow(view, old)
    assert [float(same_token[k][0, 0]) for k in ("equal", "sum", "max")] == [4, 2.5, 0.75]
    other_token = follow(view, {**old, "token": view.proposal + 1})
    assert [float(other_token[k][0, 0]) for k in ("equal", "sum", "max")] == [1, 0.25, 0.25]
