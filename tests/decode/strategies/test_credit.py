"""CreditDecoding against its slow transcription, and its reduction to the plain threshold."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.propose import ProposalRequest, propose_chunk
from starr.decode.strategies.credit import Credit, likeliest
from starr.decode.strategies.threshold import Threshold
from tests.decode.strategies.driver import World, compare, play, same, worlds
from tests.reference.ref_credit import RefCredit

OPTIONS = st.fixed_dictionaries(
    {
        "tau": st.integers(2, 17).map(lambda n: n / 16),
        "alpha": st.sampled_from([0.0, 0.3, 0.7, 3.0]),
        "decay": st.sampled_from([0.0, 0.5, 0.8, 1.0]),
        "gamma": st.sampled_from([0.0, 0.2, 1.0]),
    }
)


@settings(deadline=None, max_examples=80)
@given(worlds(), OPTIONS)
def test_equals_the_slow_transcription(world, options):
    compare(Credit(**options), lambda: RefCredit(**options), world)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(2, 17))
def test_alpha_zero_is_the_plain_threshold(seed, widths, sixteenths):
    first, second = (World(seed, widths, coarse=False) for _ in range(2))
    tau = sixteenths / 16
    assert same(play(Credit(tau=tau, alpha=0.0), first), play(Threshold(tau=tau), second))


def test_without_credit_the_confidence_is_the_proposal_s_to_the_bit():
    logits = torch.randn(1, 64, 4096, generator=torch.Generator().manual_seed(0)) * 4
    token, confidence = likeliest(logits)
    proposals = propose_chunk(logits[0].clone(), ProposalRequest(mask_id=0, held=torch.zeros(64, dtype=torch.int64)))
    assert torch.equal(token[0], proposals.token)
    assert torch.equal(confidence[0], proposals.confidence)


def two_equal_positions():
    """A view of two masks, both sure of token 3 to the same degree."""
    world = World(3, [2], coarse=False)
    world.frozen = torch.tensor([[False, False, True]])
    world.masked = ~world.frozen
    logits = torch.zeros(1, 3, 7)
    logits[0, :, 3] = 2.0
    return replace(world.view(), distribution=logits, best=likeliest(logits)[1], confidence=likeliest(logits)[1])


def test_a_steady_token_passes_the_threshold_in_time():
    view, strategy = two_equal_positions(), Credit(tau=0.7)
    carry, commits = strategy.begin(view), []
    for _ in range(12):
        decision, carry = strategy.decide(view, carry)
        commits.append(int(decision.action.sum()))
    assert commits[0] == 1
    assert commits[-1] == 2
    assert commits == sorted(commits)


def test_a_confidence_at_the_threshold_is_enough():
    view = two_equal_positions()
    at = Credit(tau=float(view.best[0, 0]), alpha=0.0)
    above = Credit(tau=float(view.best[0, 0]) + 2**-16, alpha=0.0)
    assert [int(s.decide(view, s.begin(view))[0].action.sum()) for s in (at, above)] == [2, 1]
