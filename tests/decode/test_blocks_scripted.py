"""LLaDA2.1's loop on scripted answers, and random runs over block-causal and expert models."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from tests.decode.test_blocks import MODELS, SHIFTED, STRATEGIES, WHOLE, prompt_of
from tests.tiny import EOS, MASK, SIGMOID, SOFTMAX, form_of, tiny_model

V = 96


class Script(torch.nn.Module):
    """Answers by a table: ``say(call, position, tokens)`` is the token and its probability; states are logits."""

    def __init__(self, model, say):
        super().__init__()
        self.shape, self.embed, self.say, self.calls = model.net.shape, model.net.embed, say, 0

    def head(self, states):
        return states.clone()

    def forward(self, tokens, positions=None, attend=None, buffer=None, slots=None, wanted=None, added=None):
        states = torch.zeros(1, wanted.shape[1], V)
        for place, position in enumerate(wanted[0].clamp(max=tokens.shape[1] - 1).tolist()):
            token, sure = self.say(self.calls, position, tokens[0].tolist())
            states[0, place] = math.log((1 - sure) / (V - 2))
            states[0, place, token] = math.log(sure)
        self.calls += 1
        return states


def play(say, count=4, **options):
    model = tiny_model(block=4)
    model = replace(model, net=Script(model, say))
    given = {"strategy": "edit:tau=0.7,edit=0.6", "cache": "none", "max_tokens": count, "trace": True} | options
    return starr.generate(model, [10, 11, 12, 13], **given)


def test_an_edit_flips_a_token_and_the_block_is_confirmed():
    """Call 0 commits 20 everywhere, call 1 would rather have 21 at position 5, call 2 changes nothing."""
    result = play(lambda call, position, tokens: (21, 0.9) if call and position == 5 else (20, 0.9))
    assert result.tokens == [20, 21, 20, 20]
    assert (result.stats.forwards, result.stats.revisions) == (3, 1)


def test_two_edits_that_oscillate_end_after_the_post_steps():
    result = play(lambda call, position, tokens: (20 + call % 2, 0.9) if position == 6 else (20, 0.9))
    assert result.stats.forwards == 1 + 16
    assert result.stats.revisions == 16
    assert MASK not in result.tokens


def test_an_end_of_text_that_is_edited_away_does_not_end_the_row():
    def say(call, position, tokens):
        return (EOS, 0.9) if position == 5 and call == 0 else (20, 0.9)

    result = play(say, count=8)
    assert result.tokens == [20] * 8
    assert result.finish_reason == "length"


def test_an_end_of_text_that_stays_ends_the_row_with_its_block():
    result = play(lambda call, position, tokens: (EOS if position == 5 else 20, 0.9), count=12)
    assert (result.tokens, result.finish_reason) == ([20], "stop")
    assert result.stats.forwards == 2  # the second confirms the block; no other block is opened


def test_an_edit_below_its_threshold_is_not_made():
    result = play(lambda call, position, tokens: (21, 0.59) if call and position == 5 else (20, 0.9))
    assert result.tokens == [20] * 4


def test_prompt_tokens_of_the_block_are_never_edited():
    model = tiny_model(block=4)
    model = replace(model, net=Script(model, lambda call, position, tokens: (30, 0.99)))
    seen = []
    for event in starr.stream(model, [10, 11], strategy="edit", cache="none", max_tokens=2, trace=True):
        seen.append(event)
    assert seen[-1].generation.tokens == [30, 30]
    assert all(step.window[0] == 0 for step in seen[-1].generation.trace.steps)


ROUTED = {"full softmax": tiny_model(routing=SOFTMAX), "full sigmoid": tiny_model(routing=SIGMOID)}
ANY = {**MODELS, "shifted": SHIFTED, **ROUTED}


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(ANY)),
    st.sampled_from([name for name in STRATEGIES if name not in WHOLE]),
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([None, 3, 4, 5, 8]),
    st.sampled_from([0.0, 0.8]),
    st.booleans(),
)
def test_no_mask_is_left_the_bound_is_kept_and_the_prompt_is_intact(name, strategy, length, count, block, heat, kept):
    model, prompt = ANY[name], prompt_of(length)
    cache = "none" if name in ROUTED or not kept else "exact"
    options = {"strategy": form_of(strategy), "block_length": block, "temperature": heat, "eos": "never"}
    result = starr.generate(model, prompt, cache=cache, max_tokens=count, trace=True, **options)
    assert len(result.tokens) == count
    assert MASK not in result.tokens
    size = block or model.spec.block_length or count
    windows = -(-(count + 2 * size) // size)
    loops = 2 * 32 * windows if strategy == "remdm_llada" else 0  # its own schedule
    assert result.stats.forwards <= 3 * (count + size) + 17 * windows + loops
    for step in result.trace.steps:
        assert 0 <= step.window[0] < step.window[1] <= count


@pytest.mark.parametrize("name", ROUTED)
def test_full_attention_models_with_experts_take_every_cache(name):
    for cache in ("none", "prefix", "dual", "dkv"):
        result = starr.generate(ROUTED[name], prompt_of(5), cache=cache, strategy="starr", max_tokens=12, eos="never")
        assert len(result.tokens) == 12
        assert MASK not in result.tokens
