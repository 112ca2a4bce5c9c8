"""Block-causal decoding: exact K/V, the released loops, rows of any prompt length together, refusals."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.api import Options, build_request
from starr.decode.caches.exact import SEALED
from starr.decode.engine import Engine
from starr.errors import InputError
from starr.model.network.masks import block_mask
from starr.model.network.transformer import KVBuffer
from tests.reference import ref_block_loops as loops
from tests.tiny import EOS, MASK, SIGMOID, SOFTMAX, form_of, tiny_model

B = 8
PROMPTS = (1, B - 1, B, B + 1, 2 * B, 2 * B + 3)
MODELS = {
    "dense": tiny_model(block=B, seed=2),
    "softmax": tiny_model(block=B, seed=3, routing=SOFTMAX),
    "sigmoid": tiny_model(block=B, seed=4, routing=SIGMOID),
}
SHIFTED = tiny_model(block=B, seed=6, shift=True, window=4)
every_model = pytest.mark.parametrize("name", MODELS)


def prompt_of(length: int, seed: int = 0) -> list[int]:
    return torch.randint(3, 90, (length,), generator=torch.Generator().manual_seed(100 * seed + length)).tolist()


def logits_of(model, block=None):
    """The reference's view of a model: one whole forward of one row."""

    def run(tokens: list[int]) -> torch.Tensor:
        seen = block_mask(len(tokens), block or model.spec.block_length)
        with torch.no_grad():
            logits = model.net.head(model.net(torch.tensor([tokens]), attend=seen))[0]
        logits[:, MASK] = -torch.inf
        return logits

    return run


def decode(model, prompt, **options):
    return starr.generate(model, prompt, **{"strategy": "threshold", "cache": "exact", "max_tokens": 21} | options)


@every_model
@pytest.mark.parametrize("length", PROMPTS)
@torch.inference_mode()
def test_prefill_steps_and_seal_give_the_keys_and_values_of_one_forward(name, length):
    """At every step: what is sealed equals a whole forward over the row's tokens to 1e-5."""
    model = MODELS[name]
    engine = Engine(model)
    options = Options(strategy="threshold", cache="exact", max_tokens=2 * B, eos="never")
    engine.add(build_request(model, prompt_of(length), options))
    checked = set()
    while engine.busy:
        engine.step()
        if not engine.batch.rows:
            break
        canvas, columns = engine.batch.canvas, engine.batch.canvas.columns
        sealed = canvas.notes[SEALED][0]
        assert not bool((sealed & canvas.masked[0]).any())
        whole = KVBuffer.empty(model.net.shape, 1, columns, model.net.embed.weight)
        at = torch.arange(columns)[None]
        model.net(canvas.tokens, at, block_mask(columns, B), whole)
        for kept, true in ((engine.batch.buffer.keys, whole.keys), (engine.batch.buffer.values, whole.values)):
            torch.testing.assert_close(kept[:, 0, :, sealed], true[:, 0, :, sealed], atol=1e-5, rtol=0)
        checked.add(int(sealed.sum()))
    assert max(checked) >= (length // B + 1) * B


@every_model
@pytest.mark.parametrize("strategy", ["threshold", "threshold:origin=sdar,tau=0.6", "confidence", "edit", "starr"])
def test_exact_gives_what_recomputing_everything_gives(name, strategy):
    prompts = [prompt_of(length) for length in PROMPTS]
    options = {"strategy": strategy, "trace": True, "eos": "never"}
    for prompt in prompts:
        exact, plain = (decode(MODELS[name], prompt, cache=cache, **options) for cache in ("exact", "none"))
        assert exact.tokens == plain.tokens
        assert exact.stats.forwards == plain.stats.forwards
        assert exact.stats.positions < plain.stats.positions or len(prompt) == 1


@pytest.mark.parametrize("model", [*MODELS.values(), SHIFTED], ids=[*MODELS, "shifted"])
@pytest.mark.parametrize("cache", ["exact", "none"])
def test_rows_of_different_prompts_give_together_what_they_give_alone(model, cache):
    prompts = [prompt_of(length) for length in PROMPTS]
    alone = [decode(model, prompt, cache=cache) for prompt in prompts]
    for batch_size in (3, 6):
        together = decode(model, prompts, cache=cache, batch_size=batch_size)
        assert [g.tokens for g in together] == [g.tokens for g in alone]
        assert [g.stats.forwards for g in together] == [g.stats.forwards for g in alone]
        assert [g.stats.positions for g in together] == [g.stats.positions for g in alone]


@every_model
def test_a_later_block_never_changes_earlier_logits_and_the_same_block_does(name):
    model, tokens = MODELS[name], prompt_of(3 * B)
    run = logits_of(model)
    before = run(tokens)
    changed = [*tokens[: 2 * B + 1], (tokens[2 * B + 1] + 1) % 90, *tokens[2 * B + 2 :]]
    after = run(changed)
    torch.testing.assert_close(after[: 2 * B], before[: 2 * B], atol=0 if name == "dense" else 1e-5, rtol=0)
    difference = (after - before)[2 * B :, MASK + 1 :].abs()
    assert bool(difference.amax(dim=1).gt(1e-4).all())


quick = settings(deadline=None, max_examples=12)
lengths = st.integers(1, 2 * B + 3)
taus = st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0])


@quick
@given(lengths, st.integers(1, 20), st.sampled_from([1, 2, 3, B]), taus, st.sampled_from(["sdar", "llada2"]))
def test_the_loop_of_sdar_and_llada2(length, count, steps, tau, origin):
    model, prompt = MODELS["dense"], prompt_of(length)
    expected, _ = loops.dynamic(logits_of(model), prompt, count, block=B, steps=steps, tau=tau, mask=MASK, eos=EOS)
    found = decode(model, prompt, strategy=f"threshold:origin={origin},tau={tau},steps={steps}", max_tokens=count)
    assert found.tokens == expected


@quick
@given(lengths, st.integers(1, 20), taus, st.sampled_from([0.0, 0.2, 0.5, 0.9]))
def test_the_loop_of_llada21(length, count, tau, edit):
    model, prompt = MODELS["dense"], prompt_of(length)
    options = {"block": B, "tau": tau, "edit": edit, "post_steps": 16, "mask": MASK, "eos": EOS}
    expected, forwards = loops.editing(logits_of(model), prompt, count, **options)
    found = decode(model, prompt, strategy=f"edit:tau={tau},edit={edit}", max_tokens=count)
    assert (found.tokens, found.stats.forwards) == (expected, forwards)


@quick
@given(st.integers(1, 2 * B + 3) | st.just(B) | st.just(2 * B), st.integers(1, 20), taus)
def test_the_loop_of_fast_dllm_v2(length, count, tau):
    prompt = prompt_of(length)
    options = {"block": B, "sub": 4, "tau": tau, "mask": MASK, "eos": EOS}
    expected, forwards = loops.fast_dllm_v2(logits_of(SHIFTED), prompt, count, **options)
    found = decode(SHIFTED, prompt, strategy=f"threshold:origin=fast_dllm_v2,tau={tau}", max_tokens=count)
    assert found.tokens == expected
    assert found.stats.forwards <= forwards  # masks that are cut off anyway are not waited for
    plain = decode(SHIFTED, prompt, strategy=f"threshold:origin=fast_dllm_v2,tau={tau}", max_tokens=count, cache="none")
    assert plain.tokens == expected


def test_fast_dllm_v2_with_a_threshold_of_one_commits_one_token_a_step():
    found = decode(SHIFTED, prompt_of(B), strategy="threshold:origin=fast_dllm_v2,tau=1", max_tokens=B, eos="never")
    assert found.stats.forwards == B
    assert found.stats.prefill.forwards == 1  # the prompt's forward gives the first token and nothing else


class Counted(torch.nn.Module):
    """A network that counts its calls."""

    def __init__(self, net):
        super().__init__()
        self.net, self.calls = net, 0
        self.head, self.shape, self.embed = net.head, net.shape, net.embed

    def forward(self, *args, **kwargs):
        self.calls += 1
        return self.net(*args, **kwargs)


@pytest.mark.parametrize("model", [MODELS["dense"], SHIFTED], ids=["dense", "shifted"])
@pytest.mark.parametrize("length", PROMPTS)
def test_prefill_denoise_and_seal_add_up_to_the_models_calls(model, length):
    from dataclasses import replace

    counted = replace(model, net=Counted(model.net))
    stats = decode(counted, prompt_of(length), eos="never", max_tokens=20).stats
    parts = (stats.prefill, stats.denoise, stats.seal)
    assert sum(part.forwards for part in parts) == stats.forwards == counted.net.calls
    assert sum(part.positions for part in parts) == stats.positions
    assert sum(part.seconds for part in parts) == pytest.approx(stats.seconds)
    assert stats.prefill.positions == length // B * B
    blocks = -(-(length + 20) // B) - length // B
    assert stats.seal.positions >= (blocks - 1) * B  # every block but the last, merged with the next one's first step
    assert stats.seal.forwards == (blocks - 1 if model.spec.shift else 0)
    assert stats.to_dict()["denoise"]["forwards"] == stats.denoise.forwards


STRATEGIES = [entry.name for entry in starr.strategies()]
WHOLE = ("adablock", "daedal", "klass", "learn2pd", "saber", "wino")


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name not in WHOLE])
@pytest.mark.parametrize("model", [*MODELS.values(), SHIFTED], ids=[*MODELS, "shifted"])
def test_every_strategy_within_a_block(model, strategy):
    """No mask left, the bound kept, the prompt untouched, also in a block that begins with prompt."""
    for length in (1, B - 1, B + 3):
        prompt = prompt_of(length)
        request = build_request(
            model, prompt, Options(strategy=form_of(strategy), cache="exact", max_tokens=13, eos="never")
        )
        engine = Engine(model)
        engine.add(request)
        events = []
        while engine.busy:
            if engine.batch.rows:
                assert engine.batch.canvas.tokens[0, :length].tolist() == prompt
            events += engine.step()
        result = events[-1].generation
        assert len(result.tokens) == 13
        assert MASK not in result.tokens
        bound = request.step_limit + result.stats.seal.forwards
        assert result.stats.forwards <= max(bound, engine.model.spec.max_length)


QUOTAS = [e.name for e in starr.strategies() if any(option.name == "steps" for option in e.options)]


@pytest.mark.parametrize("strategy", [*(f"{name}:steps=1" for name in QUOTAS), "threshold:origin=sdar,tau=1,steps=1"])
@pytest.mark.parametrize("length", [B - 1, B + 5])
def test_a_quota_above_the_masks_of_the_prompts_block_leaves_the_prompt_as_it_is(strategy, length):
    """One step for a whole block, of which only one or three positions are masks."""
    model, prompt = MODELS["dense"], prompt_of(length)
    engine = Engine(model)
    engine.add(build_request(model, prompt, Options(strategy=strategy, cache="exact", max_tokens=13, eos="never")))
    events = []
    while engine.busy:
        events += engine.step()
        if engine.batch.rows:
            assert engine.batch.canvas.tokens[0, :length].tolist() == prompt
    assert MASK not in events[-1].generation.tokens


@pytest.mark.parametrize("strategy", WHOLE)
def test_strategies_that_need_the_whole_canvas_are_refused_with_the_reason(strategy):
    with pytest.raises(InputError, match=f"{strategy} cannot be used with a block-causal model: it"):
        decode(MODELS["dense"], prompt_of(3), strategy=form_of(strategy))


@pytest.mark.parametrize("cache", [e.name for e in starr.caches() if e.name not in ("none", "exact")])
def test_approximate_caches_are_refused_with_the_reason(cache):
    with pytest.raises(InputError, match="exact keeps them as they are"):
        decode(MODELS["dense"], prompt_of(3), cache=cache)


def test_exact_is_refused_where_attention_is_full():
    with pytest.raises(InputError, match="no K/V are final"):
        decode(tiny_model(), prompt_of(3))


def test_text_behind_a_mask_is_refused():
    with pytest.raises(InputError, match="does not see what follows a block"):
        starr.infill(MODELS["dense"], "ab[MASK:3]cd", cache="exact", strategy="threshold")


@pytest.mark.parametrize("length", PROMPTS)
def test_the_canvas_is_rounded_up_and_cut(length):
    result = decode(MODELS["dense"], prompt_of(length), max_tokens=5, eos="never", trace=True)
    assert (len(result.tokens), result.finish_reason, result.trace.length) == (5, "length", 5)
    assert max(step.window[1] for step in result.trace.steps) == 5
    whole = decode(MODELS["dense"], prompt_of(length), max_tokens=B, eos="never")
    first = B - length % B  # positions of the first block: the rest of it is decided together whatever max_tokens says
    assert result.tokens[: min(5, first)] == whole.tokens[: min(5, first)]


def test_another_block_length_is_the_attentions_too():
    model, prompt = MODELS["dense"], prompt_of(5)
    options = {"block": 4, "steps": 4, "tau": 0.6, "mask": MASK, "eos": EOS}
    expected, _ = loops.dynamic(logits_of(model, 4), prompt, 14, **options)
    found = decode(model, prompt, strategy="threshold:origin=sdar,tau=0.6", max_tokens=14, block_length=4)
    assert found.tokens == expected


@pytest.mark.parametrize("strategy", ["threshold", "edit"])
def test_settled_text_streams_and_never_changes(strategy):
    model, prompt = MODELS["dense"], prompt_of(5)
    shown = ""
    for event in starr.stream(model, prompt, strategy=strategy, cache="exact", max_tokens=21, eos="never"):
        assert event.text.startswith(shown)
        shown = event.text
        assert event.settled <= 21
    assert shown == decode(model, prompt, strategy=strategy, eos="never").text


def test_max_forwards_commits_the_rest_over_all_blocks():
    for model in (MODELS["dense"], SHIFTED):
        for cache in ("exact", "none"):
            result = decode(model, prompt_of(B), max_tokens=20, max_forwards=3, eos="never", cache=cache)
            assert (len(result.tokens), result.stats.forwards) == (20, 3)
            assert MASK not in result.tokens
