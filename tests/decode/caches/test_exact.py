"""The query plan of ``exact`` at every step of real runs, and Fast-dLLM v2's block cache against keys built by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import starr
from starr.api import Options, build_request
from starr.decode.engine import Engine
from starr.model.network.layers import rope_tables
from starr.model.spec import Habits
from tests.decode.test_blocks import PROMPTS, SHIFTED, B, prompt_of
from tests.reference.ref_block_loops import best, cut, judged
from tests.tiny import EOS, MASK, tiny_model

PLAIN = tiny_model(block=B, seed=2)


def plans(model, length, strategy):
    """(queried positions, window start, tokens) of every forward of one run."""
    engine = Engine(model)
    options = Options(strategy=strategy, cache="exact", max_tokens=20, eos="never")
    engine.add(build_request(model, prompt_of(length), options))
    engine.batch.admit()
    while engine.busy:
        batch = engine.batch
        where = [i for i, wanted in enumerate(batch.plan.query[0].tolist()) if wanted]
        yield where, int(batch.canvas.window.start[0]), batch.canvas.tokens[0].tolist()
        engine.step()


@pytest.mark.parametrize("length", PROMPTS)
@pytest.mark.parametrize("strategy", ["threshold:tau=0.6", "edit:tau=0.5,edit=0.3"])
@pytest.mark.parametrize("model", [PLAIN, SHIFTED], ids=["plain", "shifted"])
def test_the_open_block_and_what_is_not_sealed(model, strategy, length):
    """In words: a position before the block is computed once more after its block was left, then never again."""
    final: dict[int, int] = {}  # position -> the token its last forward saw
    for where, window, tokens in plans(model, length, strategy):
        start = window // B * B
        block = set(range(start, start + B))
        stale = {i for i in range(start) if final.get(i) != tokens[i] or i // B * B not in whole(final, tokens, start)}
        lead = model.spec.shift and tokens[start] == MASK
        expected = stale | (set() if lead else block) | ({start - 1} if lead else set())
        assert set(where) == expected
        final |= {i: tokens[i] for i in where}


def whole(final, tokens, start):
    """Starts of the blocks before ``start`` whose last forwards saw nothing but the present tokens."""
    blocks = range(0, start, B)
    return {b for b in blocks if all(final.get(i) == tokens[i] for i in range(b, b + B))}


def test_editing_that_ends_on_an_unchanged_step_needs_no_seal():
    result = starr.generate(PLAIN, prompt_of(B), strategy="edit", cache="exact", max_tokens=2 * B, eos="never")
    assert result.stats.seal.positions == 0
    plain = starr.generate(PLAIN, prompt_of(B), strategy="threshold", cache="exact", max_tokens=2 * B, eos="never")
    assert plain.stats.seal.positions == B


class ByHand:
    """Layer by layer with keys and values in plain lists: past blocks, and 8 saved ones of which some are replaced."""

    def __init__(self, net):
        self.net, self.kept = net, [{} for _ in net.layers]  # layer -> position -> (k, v)

    @torch.no_grad()
    def run(self, tokens, positions):
        """Logits of these tokens; all positions known so far and not behind the last are seen."""
        x = self.net.embed(torch.tensor([tokens]))
        cos, sin = rope_tables(torch.tensor([positions]), self.net.shape, torch.float32)
        for layer, kept in zip(self.net.layers, self.kept, strict=True):
            normed = layer.input_norm(x)
            k, v = layer.attention.keys_values(normed, cos, sin)
            kept |= {p: (k[0, :, i], v[0, :, i]) for i, p in enumerate(positions)}
            end = max(positions) // B * B + B
            seen = [p for p in sorted(kept) if p < end]
            keys, values = (torch.stack([kept[p][part] for p in seen], dim=1) for part in (0, 1))
            group = self.net.shape.heads // self.net.shape.kv_heads
            q = layer.attention.queries(normed, cos, sin)[0]
            weights = F.softmax(q @ keys.repeat_interleave(group, 0).mT / q.shape[-1] ** 0.5, dim=-1)
            mixed = (weights @ values.repeat_interleave(group, 0)).transpose(0, 1).flatten(1)[None]
            x = layer.finish(x, mixed)
        logits = self.net.head(self.net.norm(x))[0]
        logits[:, [MASK, EOS]] = -torch.inf
        return logits


def block_cached(net, prompt, count, sub, tau):
    """Fast-dLLM v2's loop with its block cache, word for word."""
    hand, x, start = ByHand(net), list(prompt), len(prompt)
    for block in range(0, start // B * B, B):
        logits = hand.run(x[block : block + B], list(range(block, block + B)))
    end = -(-(start + count) // B) * B
    while len(x) < end:
        if len(x) % B == 0:
            x.append(judged(logits)[0][-1])
        begin = len(x) // B * B
        x += [MASK] * (begin + B - len(x))
        saved = False
        for low in range(begin, begin + B, sub):
            while masks := [i for i in range(low, low + sub) if x[i] == MASK]:
                if low >= start + count:
                    break
                wide = not saved or x[low] == MASK
                fed = range(begin, begin + B) if wide else range(low, low + sub)
                token, confidence = judged(hand.run([x[i] for i in fed], list(fed)))
                saved = True
                token, confidence = (dict(zip([i + 1 for i in fed], part, strict=True)) for part in (token, confidence))
                for i in {*best(masks, confidence, 1), *(i for i in masks if confidence[i] > tau)}:
                    x[i] = token[i]
        logits = hand.run(x[begin : begin + B], list(range(begin, begin + B)))
    return cut(x, start, count, EOS)


@pytest.mark.parametrize("length", PROMPTS)
@pytest.mark.parametrize("tau", [0.3, 0.6, 1.0])
def test_fast_dllm_v2s_block_cache(length, tau):
    model = replace(SHIFTED, spec=replace(SHIFTED.spec, habits=Habits(window=4)))
    form = f"threshold:origin=fast_dllm_v2,tau={tau}"
    options = {"strategy": form, "max_tokens": 20, "eos": "never"}
    found = starr.generate(model, prompt_of(length), cache="exact:sub_blocks=true", **options)
    assert found.tokens == block_cached(model.net, prompt_of(length), 20, 4, tau)
    exact = starr.generate(model, prompt_of(length), cache="exact", **options)
    assert found.stats.positions < exact.stats.positions
