"""ReMDM without chance against its slow transcription, and its number of forwards."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.decode.strategies.remdm_llada import ReMDMForLLaDA
from tests.decode.strategies.driver import compare, worlds
from tests.reference.ref_remdm_llada import RefReMDMForLLaDA
from tests.tiny import tiny_model


@settings(deadline=None, max_examples=50)
@given(worlds(), st.sampled_from([0.0, 0.5, 0.875, 0.999]), st.integers(0, 4))
def test_equals_the_slow_transcription(world, share, loops):
    compare(ReMDMForLLaDA(share=share, loops=loops), lambda: RefReMDMForLLaDA(share, loops), world, steps=24)


@pytest.mark.parametrize("block_length", [None, 8])
def test_it_takes_as_many_forwards_as_it_says(block_length):
    given = {"max_tokens": 16, "block_length": block_length, "eos": "never", "strategy": "remdm_llada:loops=5"}
    run = starr.generate(tiny_model(), "a prompt", **given)
    loops = 5 * (1 if block_length is None else 2)
    assert (run.stats.forwards, run.stats.revocations, run.stats.commits) == (16 + 2 * loops, loops, 16 + loops)
