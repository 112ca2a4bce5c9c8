from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.hierarchy import Hierarchy, best_of_runs
from tests.decode.strategies.driver import World, compare, play, steps_to_close, worlds
from tests.decode.strategies.stateless import Stateless
from tests.reference.ref_hierarchy import hierarchy

BARS = st.sampled_from([0.0, 0.25, 0.4, 0.5, 0.75, 0.9, 1.0, 1.5])


@settings(deadline=None, max_examples=80)
@given(worlds(), BARS, BARS, st.booleans(), BARS)
def test_equals_reference(world, tau, low, revoke, revoke_below):
    options = {"tau": tau, "low": low, "revoke": revoke, "revoke_below": revoke_below}
    compare(Hierarchy(**options), lambda: Stateless(hierarchy, **options), world)


def test_the_best_of_every_run():
    among = torch.tensor([[1, 1, 0, 1, 0, 0, 1, 1, 1]]).bool()
    score = torch.tensor([[0.5, 0.5, 0.9, 0.1, 0.9, 0.9, 0.2, 0.4, 0.3]])
    assert best_of_runs(score, among).nonzero()[:, 1].tolist() == [0, 3, 7]


def test_revocations_stay_below_commits():
    strategy = Hierarchy(revoke=True, revoke_below=1.5)
    for action in play(strategy, World(5, [12, 7, 1, 9]), steps=30):
        assert ((action == 2).sum(1) < (action == 1).sum(1)).all()
    widths = [12, 7, 1, 9]
    assert all(taken <= width for taken, width in zip(steps_to_close(strategy, World(5, widths)), widths, strict=True))


@pytest.mark.parametrize("revoke", [False, True])
def test_only_the_revoking_variant_says_so(revoke):
    assert Hierarchy(revoke=revoke).revokes() is revoke
