"""Verified decoding beside its slow loop, and what must hold for every strategy and cache."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.errors import InputError
from tests.reference import ref_baselines as base
from tests.reference.cases import Stateless
from tests.reference.loops import Loop
from tests.reference.ref_hierarchy import hierarchy
from tests.reference.ref_starr import RefStarr
from tests.reference.ref_verify import verified
from tests.tiny import MASK, form_of, tiny_model

PROMPTS = [[0, 7, 8, 9], [0, 40], [0, *range(20, 40)]]


class OfStarr(RefStarr):
    """Its windows open at their first step."""

    def open(self, row=None):
        self.past = None

    def step(self, row):
        if self.past is None:
            super().open(row)
        said = super().step(row)
        doubts = [threshold - value for threshold, value in zip(said.threshold, self.seen(row), strict=True)]
        return SimpleNamespace(action=said.action, doubts=doubts)


RULES = {
    "threshold:tau=0.3": lambda: base.RefThreshold(0.3, True),
    "factor:factor=4.0": lambda: base.RefFactor(4.0, False),
    "hierarchy": lambda: Stateless(hierarchy, tau=0.9, low=0.4, revoke=False, revoke_below=0.4),
    "starr:spatial=false": lambda: OfStarr(starr.strategy("starr:spatial=false")),
}


def compare(model, strategy, ratio, block, prompts, length):
    ours = starr.generate(
        model, prompts, strategy=strategy, verify=ratio, block_length=block, max_tokens=length, batch_size=2
    )
    for prompt, found in zip(prompts, ours, strict=True):
        loop = Loop(model, prompt, length)
        verified(loop, RULES[strategy](), ratio, block or length)
        assert (loop.text, loop.forwards) == (found.tokens, found.stats.forwards)
    return sum(found.stats.revocations for found in ours)


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
@pytest.mark.parametrize("strategy", RULES)
def test_same_tokens_and_forwards_as_the_slow_loop(strategy, shift):
    """Some token is revoked in every case, else nothing is compared."""
    revoked = 0
    for seed in (1, 2):
        model = tiny_model(shift=shift, sharpness=5.0, seed=seed)
        revoked += compare(model, strategy, 0.5, None, PROMPTS, 20) + compare(model, strategy, 0.9, 8, PROMPTS, 20)
    assert revoked > 0


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sharpness=st.sampled_from([2.0, 5.0, 8.0]),
    shift=st.booleans(),
    ratio=st.sampled_from([0.05, 0.3, 0.7, 1.0]),
    strategy=st.sampled_from(sorted(RULES)),
    block=st.sampled_from([None, 5]),
)
def test_same_as_the_slow_loop_on_random_models(seed, sharpness, shift, ratio, strategy, block):
    model = tiny_model(seed=seed, sharpness=sharpness, shift=shift)
    compare(model, strategy, ratio, block, PROMPTS[:2], 11)


STRATEGIES = ["starr", "wino", "saber", "edit", "remdm:steps=8", "hierarchy:revoke=true", "threshold:tau=0.4"]
STRATEGIES += ["freedave:steps=8", "daedal", "adablock:delimiters=9", "random:steps=4"]


@pytest.mark.parametrize("cache", ["none", "prefix", "dual", "dkv", "dkv_greedy", "vicinity"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_are_alone_what_they_are_in_a_batch(strategy, cache):
    model = tiny_model(sharpness=6.0, shift=cache == "dual")
    given = {"strategy": form_of(strategy), "cache": cache, "verify": 0.5, "block_length": 8, "max_tokens": 20}
    try:
        together = starr.generate(model, PROMPTS, batch_size=3, **given)
    except InputError:
        pytest.skip("the cache cannot serve the strategy")
    alone = [starr.generate(model, prompt, **given) for prompt in PROMPTS]
    assert [a.tokens for a in alone] == [t.tokens for t in together]
    assert [a.stats.forwards for a in alone] == [t.stats.forwards for t in together]
    assert not any(MASK in t.tokens for t in together)


@pytest.mark.parametrize("shift", [False, True])
def test_a_cache_that_is_always_fresh_changes_nothing(shift):
    model = tiny_model(sharpness=6.0, shift=shift)
    given = {"strategy": "threshold:tau=0.3", "verify": 0.6, "max_tokens": 24}
    plain = starr.generate(model, PROMPTS, **given)
    kept = starr.generate(model, PROMPTS, cache="dkv:refresh=1", **given)
    assert [p.tokens for p in plain] == [k.tokens for k in kept]
    assert sum(p.stats.revocations for p in plain) > 0


@pytest.mark.parametrize("block", [None, 8])
def test_a_stream_never_contradicts_itself(block):
    model = tiny_model(sharpness=6.0)
    given = {"strategy": "threshold:tau=0.3", "verify": 0.6, "max_tokens": 24, "block_length": block}
    shown = ""
    for event in starr.stream(model, PROMPTS[0], **given):
        assert event.text.startswith(shown)
        shown = event.text
    assert shown == starr.generate(model, PROMPTS[0], **given).text


def test_shadows_are_counted_and_one_token_a_step_needs_none():
    model = tiny_model(sharpness=1.0)
    plain = starr.generate(model, PROMPTS[0], strategy="confidence", max_tokens=8)
    checked = starr.generate(model, PROMPTS[0], strategy="confidence", max_tokens=8, verify=1e-6)
    held = sum(range(8))
    assert checked.stats.forwards == plain.stats.forwards
    assert checked.stats.positions == plain.stats.positions + held
    shifted = tiny_model(sharpness=1.0, shift=True)
    plain, checked = (
        starr.generate(shifted, PROMPTS[0], strategy="confidence", max_tokens=8, verify=v) for v in (0, 1e-6)
    )
    assert checked.stats.positions == plain.stats.positions + 2 * held


@pytest.mark.parametrize("shift", [False, True])
def test_block_causal_models_check_a_block_before_it_is_sealed(shift):
    model = tiny_model(sharpness=6.0, shift=shift, block=8)
    given = {"strategy": "threshold:tau=0.2", "verify": 0.7, "max_tokens": 24}
    exact = starr.generate(model, PROMPTS, cache="exact", **given)
    plain = starr.generate(model, PROMPTS, cache="none", **given)
    assert [e.tokens for e in exact] == [p.tokens for p in plain]
    assert [e.stats.forwards for e in exact] == [p.stats.forwards for p in plain]
    assert sum(e.stats.revocations for e in exact) > 0


def test_given_tokens_are_never_doubted():
    model = tiny_model(sharpness=6.0)
    found = starr.infill(model, "ab[MASK:4]cd[MASK:3]ef", strategy="threshold:tau=0.1", verify=1.0)
    parts = [model.tokenizer.decode(model.tokenizer.encode(part)) for part in ("ab", "cd", "ef")]
    assert [found.text[:2], found.text[6:8], found.text[11:]] == parts


def test_the_ratio_is_a_share():
    for wrong in (-0.1, 1.1):
        with pytest.raises(InputError) as error:
            starr.generate(tiny_model(), "a", verify=wrong, max_tokens=4)
        assert error.value.param == "verify"


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    ratio=st.sampled_from([0.1, 0.5, 1.0]),
    strategy=st.sampled_from(STRATEGIES),
    enforce=st.sampled_from(["safe", "strict", "bounded", "literal"]),
    block=st.sampled_from([None, 4]),
)
def test_a_run_is_bounded_and_leaves_no_mask(seed, ratio, strategy, enforce, block):
    """3 L + windows steps by the proof; the strategy's own revocations of bounded rows come on top."""
    model = tiny_model(seed=seed, sharpness=4.0)
    given = {"strategy": form_of(strategy), "enforce": enforce, "block_length": block, "max_tokens": 12}
    found = starr.generate(model, PROMPTS, verify=ratio, **given)
    most = 3 * 12 + 3 + (24 if enforce == "bounded" else 0) + (16 * 3 if strategy == "edit" else 0)
    for each in found:
        assert MASK not in each.tokens
        assert strategy == "daedal" or each.stats.forwards <= most


def test_random_runs_of_every_strategy_and_cache_have_no_fault():
    from benchmarks.verified_runs import runs

    seen, faults = runs(48, seed=3)
    assert faults == []
    assert sum(n for often, n in seen["revocations"].items() if often != "0") > 10


def test_the_trained_model_reads_as_a_true_leave_one_out_would():
    """The share of held tokens on whose doubt a shadow and a row with a mask in the token's place agree."""
    from tests.reference.special_loops import leave_one_out

    model = starr.load("bundled-dream", dtype="float32")
    text = "Then Tom has 3 + 4 = 7 apples. Then Tom has 7 - 2 = 6 apples. #### 5"
    prompt = model.tokenizer.chat([{"role": "user", "content": "Tom has 3 apples. He buys 4 and eats 2. How many?"}])
    canvas = model.tokenizer.encode(text)
    loop = Loop(model, prompt, len(canvas))
    loop.canvas = canvas
    doubts = []
    for j in range(len(canvas)):
        shadow = leave_one_out(loop, j)
        loop.canvas = [*canvas[:j], mask_of(model), *canvas[j + 1 :]]
        true = loop.logits()[j].softmax(dim=-1).tolist()
        loop.canvas = canvas
        doubts.append(tuple(p[canvas[j]] < 0.3 * max(p) for p in (shadow, true)))
    assert sum(a == b for a, b in doubts) / len(doubts) > 0.9
    assert any(a for a, _ in doubts)
    assert torch.tensor([a for a, _ in doubts]).float().mean() < 0.3


def mask_of(model):
    return model.spec.mask_id
