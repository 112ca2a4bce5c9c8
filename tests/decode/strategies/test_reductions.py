"""Peers that become the plain threshold do so through the engine: same tokens, same forwards."""

from __future__ import annotations

import pytest

from starr.api import Options, build_request, run_all
from tests.tiny import tiny_model

PROMPTS = ("abc", "hello", "zz top", "q")


@pytest.mark.parametrize("eos", ["normal", "last"])
@pytest.mark.parametrize("block_length", [None, 7])
@pytest.mark.parametrize("peer", ["credit:alpha=0,tau=0.6", "r2:tau=0.6,tau_cluster=1.1,tau_run=1.1,tau_steady=1.1"])
def test_becomes_the_plain_threshold(peer, block_length, eos):
    model = tiny_model()

    def run(strategy):
        options = Options(strategy=strategy, max_tokens=24, block_length=block_length, eos=eos)
        results = run_all(model, [build_request(model, prompt, options) for prompt in PROMPTS], 4)
        return [(r.tokens, r.stats.forwards) for r in results]

    assert run(peer) == run("threshold:tau=0.6")
