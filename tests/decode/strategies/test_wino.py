"""WINO against its slow transcription, and its bound on steps."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.strategies.wino import Wino
from tests.decode.strategies.driver import World, closes_in_time, compare, worlds
from tests.reference.ref_wino import RefWino

OPTIONS = st.fixed_dictionaries(
    {
        "tau_draft": st.integers(4, 18).map(lambda n: n / 16),
        "tau_verify": st.integers(0, 20).map(lambda n: n / 16),
        "share": st.sampled_from([0.0, 0.3, 0.7, 1.0]),
        "least": st.integers(1, 6),
        "most": st.integers(1, 8),
    }
)


@settings(deadline=None, max_examples=80)
@given(worlds(), OPTIONS)
def test_equals_the_slow_transcription(world, options):
    compare(Wino(**options), lambda: RefWino(**options), world, steps=16)


@settings(deadline=None, max_examples=40)
@given(worlds(), OPTIONS)
def test_a_window_closes_within_its_width(world, options):
    assert closes_in_time(Wino(**options), world)


def test_doubted_tokens_go_back_and_new_drafts_are_not_judged_yet():
    world = World(0, [6])
    world.frozen[:] = False
    world.masked = torch.tensor([[False, False, False, True, True, True, False]])
    world.frozen[0, 6] = True
    view = replace(
        world.view(),
        confidence=torch.tensor([[0.9, 0.9, 0.9, 0.8, 0.6875, 0.1, 0.0]]),
        extras={"shadow": torch.tensor([[0.95, 0.25, 0.125, 0.0, 0.0, 0.0, 0.0]])},
    )
    for last, expected in ((30, [0, 2, 2, 1, 1, 0, 0]), (2, [0, 0, 2, 1, 1, 0, 0]), (1, [0, 0, 0, 1, 1, 0, 0])):
        decision, carry = Wino().decide(view, {"drafts": torch.tensor([last])})
        assert decision.action[0].tolist() == expected
        assert carry["drafts"].tolist() == [2]
    strict, _ = Wino(tau_draft=0.6875).decide(view, {"drafts": torch.tensor([30])})
    assert strict.action[0].tolist() == [0, 0, 0, 1, 0, 0, 0], "one draft verifies nothing"
    strict, _ = Wino(tau_verify=0.25).decide(view, {"drafts": torch.tensor([30])})
    assert strict.action[0].tolist() == [0, 0, 2, 1, 1, 0, 0], "0.25 is not below 0.25"
    single, _ = Wino(tau_draft=0.75).decide(view, {"drafts": torch.tensor([30])})
    assert single.action[0].tolist() == [0, 0, 0, 1, 0, 0, 0]
