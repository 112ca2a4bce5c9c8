"""Caches through the engine: nothing lost by recomputing everything, rows independent, figures honest, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

import starr
from starr.api import Options, build_request, run_all
from starr.decode.caches import Cache
from starr.decode.engine import Engine
from starr.errors import InputError
from starr.model.network.transformer import KVBuffer
from tests.tiny import MASK, form_of, tiny_model

CACHED = [entry.name for entry in starr.caches() if entry.name != "none" and not entry.kind.block_causal]
RAGGED = ["a", "some prompt", "a longer prompt with many more letters", "four five"]
FAMILIES = pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])


@dataclass(frozen=True)
class Everything(Cache):
    """A buffer that is never relied on."""

    name: ClassVar[str] = "everything"
    paper: ClassVar[str] = "-"

    def query(self, canvas):
        return canvas.valid


def always(name: str) -> Cache:
    """The cache with every interval at 1."""
    entry = next(e for e in starr.caches() if e.name == name)
    return entry.kind(**{o.name: 1 for o in entry.options if o.name in ("refresh", "prompt_refresh")})


def runs(model, prompts, cache, **options):
    given = {"strategy": "starr", "max_tokens": 20, "trace": True, "eos": "never"} | options
    return starr.generate(model, list(prompts), cache=cache, batch_size=4, **given)


@FAMILIES
@pytest.mark.parametrize("prompts", [RAGGED[1:2], RAGGED], ids=["B=1", "ragged B=4"])
@pytest.mark.parametrize("name", [*CACHED, "everything"])
def test_recomputing_everything_is_no_cache(name, prompts, shift):
    """Same tokens, and the same confidences to 1e-4 at every step."""
    model = tiny_model(shift=shift)
    cache = Everything() if name == "everything" else always(name)
    for block in (None, 7):
        plain, cached = (runs(model, prompts, c, block_length=block) for c in ("none", cache))
        for expected, found in zip(plain, cached, strict=True):
            assert found.tokens == expected.tokens
            assert found.stats.forwards == found.stats.full_forwards == expected.stats.forwards
            for a, b in zip(expected.trace.steps, found.trace.steps, strict=True):
                assert b.confidence == pytest.approx(a.confidence, abs=1e-4)
                assert b.action == a.action


@FAMILIES
def test_dual_with_one_block_is_full_at_the_first_step_only(shift):
    result = runs(tiny_model(shift=shift), RAGGED[1:2], "dual")[0]
    canvas, row = 20, result.prompt_tokens + 20
    assert result.stats.full_forwards == 1
    assert [s.positions for s in result.trace.steps] == [row] + [canvas + shift] * (result.stats.forwards - 1)


@FAMILIES
@pytest.mark.parametrize("name", CACHED)
def test_alone_equals_batched(name, shift):
    """Also among rows with other caches, which share the forward but not the plan."""
    model = tiny_model(shift=shift)
    rows = [(p, n) for n in (name, "none", "dkv") for p in RAGGED[:2]]
    requests = [build_request(model, p, Options(cache=n, max_tokens=16, block_length=8)) for p, n in rows]
    together = run_all(model, requests, 4)
    for request, result in list(zip(requests, together, strict=True))[:2]:
        assert run_all(model, [request], 1)[0].tokens == result.tokens


@FAMILIES
@pytest.mark.parametrize("name", CACHED)
def test_a_revoked_position_is_seen_afresh_and_the_others_keep_their_confidence(name, shift):
    model = tiny_model(shift=shift)
    revoked = 0
    for result in runs(model, RAGGED, name, max_tokens=30):
        for before, after in zip(result.trace.steps, result.trace.steps[1:], strict=False):
            for i, action in enumerate(before.action):
                revoked += action == 2
                assert action == 0 or after.queried[i] == 1
                if not after.queried[i]:
                    assert after.confidence[i] == before.confidence[i]
    assert revoked > 0


@pytest.mark.parametrize("name", CACHED)
def test_figures_add_up(name):
    narrow = {"vicinity": "vicinity:after=2,before=2"}
    results = runs(tiny_model(), RAGGED[1:], narrow.get(name, name), block_length=5)
    for result in results:
        stats, row = result.stats, result.prompt_tokens + 20
        assert stats.positions == sum(s.positions for s in result.trace.steps)
        assert stats.positions < stats.forwards * row
        assert stats.reused_share == pytest.approx(1 - stats.positions / (stats.forwards * row))
        assert stats.positions_per_token == stats.positions / stats.tokens
        assert stats.full_forwards >= 1
    layers, kv_heads, head_width, float32 = 2, 2, 8, 4
    columns = max(r.prompt_tokens for r in results) + 20 + 1
    assert results[0].stats.buffer_bytes <= 2 * layers * kv_heads * head_width * columns * float32
    assert results[0].stats.buffer_bytes > 0


def test_padding_is_reported_but_not_counted_as_useful():
    model = tiny_model()
    alone = [runs(model, [p], "dual")[0].stats for p in RAGGED]
    together = [g.stats for g in runs(model, RAGGED, "dual")]
    assert [s.positions for s in together] == [s.positions for s in alone]
    assert [s.padded_positions for s in alone] == [0, 0, 0, 0]
    assert sum(s.padded_positions for s in together) > 0


def test_no_cache_has_no_buffer():
    stats = runs(tiny_model(), RAGGED[:1], "none")[0].stats
    assert stats.buffer_bytes == 0
    assert stats.reused_share == 0
    assert stats.full_forwards == stats.forwards


def test_a_shadow_block_is_counted():
    blocks = runs(tiny_model(), RAGGED[:1], "none", strategy="wino", block_length=5)[0]
    row = blocks.prompt_tokens + 20
    assert [step.positions for step in blocks.trace.steps] == [row + 5] * blocks.stats.forwards
    assert blocks.stats.reused_share == 0


def refused(strategy: str, cache: str) -> bool:
    chosen = starr.strategy(strategy)
    whole = chosen.needs().get("growth") or "shadow" in chosen.signals
    return bool(whole or (cache in ("dkv-greedy", "adaptive") and strategy in ("credit", "klass", "tacg")))


@FAMILIES
def test_every_strategy_with_every_cache(shift):
    """All pairs but the refused ones, in blocks and without, sixteen rows at a time."""
    model = tiny_model(shift=shift)
    pairs = [(entry.name, cache) for entry in starr.strategies() for cache in CACHED]
    requests = []
    for number, (strategy, cache) in enumerate(pairs):
        options = Options(strategy=form_of(strategy), cache=cache, max_tokens=10, block_length=(None, 4)[number % 2])
        if refused(strategy, cache):
            with pytest.raises(InputError, match="cannot be used"):
                build_request(model, RAGGED[number % 3], options)
        else:
            requests.append(build_request(model, RAGGED[number % 3], options))
    assert len(requests) > 150
    for request, result in zip(requests, run_all(model, requests, 16), strict=True):
        assert MASK not in result.tokens
        assert result.stats.forwards <= request.step_limit
        assert result.stats.buffer_bytes > 0


@FAMILIES
def test_movement_is_that_of_the_values_a_full_forward_would_have(shift):
    """1 - cosine of layer 1's values before and after some tokens changed, canvas positions only."""
    net = tiny_model(shift=shift).net
    before = torch.randint(3, 90, (2, 12), generator=torch.Generator().manual_seed(1))
    after = before.clone()
    after[0, 7], after[1, 11] = 5, 6
    index, attend = torch.arange(12).expand(2, 12), torch.ones(2, 12).bool()
    old, new = (KVBuffer.empty(net.shape, 2, 12, net.embed.weight) for _ in range(2))
    for tokens, buffer in ((before, old), (after, new)):
        net(tokens, index, attend=attend, buffer=buffer)
    flat = [buffer.values[1].transpose(1, 2).flatten(2) for buffer in (old, new)]
    expected = 1 - torch.cosine_similarity(*flat, dim=2)
    canvas = index[:, 4:]
    found = net.moved(after[:, 4:], canvas, attend, old)
    assert torch.allclose(found, expected[:, 4:], atol=1e-5)
    assert (found > 1e-3).any()
    assert torch.equal(old.values[0], new.values[0])  # layer 0 is written, deeper layers are not
    assert not torch.equal(old.values[1], new.values[1])
    assert torch.allclose(net.moved(before[:, 4:], canvas, attend, old), torch.zeros(2, 8), atol=1e-5)


def test_rows_leave_and_join_without_losing_their_buffers():
    model = tiny_model()
    options = [Options(cache=c, max_tokens=n) for c, n in (("dkv", 24), ("dual", 6), ("adaptive", 18), ("prefix", 9))]
    requests = [build_request(model, p, o) for p, o in zip(RAGGED, options, strict=True)]
    expected = [run_all(model, [r], 1)[0].tokens for r in requests]
    engine, found = Engine(model, max_rows=3), {}
    ids = [engine.add(r) for r in requests]
    while engine.busy:
        found |= {e.id: e.generation.tokens for e in engine.step() if e.done}
    assert [found[i] for i in ids] == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cache": "dual", "strategy": "wino"}, "wino needs its shadow block"),
        ({"cache": "dkv", "strategy": "daedal"}, "daedal moves positions"),
        ({"cache": "dkv-greedy", "strategy": "klass"}, "klass compares distributions"),
        ({"cache": "adaptive", "strategy": "credit"}, "credit compares distributions"),
        ({"cache": "prefix", "guidance": 1.0}, "guidance runs a second canvas"),
        ({"cache": "dkv:refresh=0"}, "dkv: refresh must be within [1"),
        ({"cache": "adaptive:share=2"}, "adaptive: share must be within [0, 1]"),
        ({"cache": "dvk"}, "Did you mean 'dkv'?"),
    ],
)
def test_what_a_rule_cannot_do_is_refused_before_the_first_forward(options, words):
    model = tiny_model()
    model.net.forward = None  # a forward would fail otherwise than with InputError
    with pytest.raises(InputError) as caught:
        starr.generate(model, "prompt", max_tokens=8, **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
