"""Attention in half precision on a CPU: right, and the same to the last bit whatever stands beside a row."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.evals.tasks import word_problems
from starr.model.device import explain_half_trouble
from starr.model.network import attention
from starr.model.network.attention import even_attention
from starr.model.numbers import find_outcome

pytestmark = pytest.mark.skipif(bool(explain_half_trouble("bfloat16")), reason="no bfloat16 on this CPU")
EVEN = pytest.mark.skipif(not find_outcome("bfloat16").even, reason="this CPU's products depend on the batch")


def qkv(seed: int, rows: int, queries: int, keys: int, width: int = 16) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, 2, n, width, generator=made).bfloat16() for n in (queries, keys, keys)]


@pytest.mark.parametrize("keys", [1, 15, 16, 300, 1025])
def test_it_is_attention(keys):
    q, k, v = qkv(0, 2, 5, keys)
    attend = torch.rand(2, 1, 5, keys) < 0.7
    attend[..., 0] = True
    for mask in (None, attend, attend[:, :, :1]):
        expected = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=mask)
        torch.testing.assert_close(even_attention(q, k, v, mask).float(), expected, atol=0.02, rtol=0.02)


def test_who_sees_nobody_gets_finite_values():
    q, k, v = qkv(0, 1, 3, 5)
    assert even_attention(q, k, v, torch.zeros(1, 1, 3, 5, dtype=torch.bool)).isfinite().all()


@EVEN
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), st.integers(1, 300), st.integers(0, 900), st.integers(1, 3), st.integers(1, 300))
def test_padding_and_neighbours_change_no_bit(seed, keys, more, rows, queries):
    q, k, v = qkv(seed, 1, queries, keys)
    alone = even_attention(q, k, v, None)
    big = qkv(seed + 1, rows, queries + 3, keys + more)
    for padded, own in zip(big, (q, k, v), strict=True):
        padded[-1:, :, : own.shape[2]] = own
    attend = (torch.arange(keys + more) < keys).expand(rows, 1, 1, -1)
    assert torch.equal(even_attention(*big, attend)[-1:, :, :queries], alone)


@EVEN
@pytest.mark.parametrize("cache", ["none", "dual", "dkv"])
def test_bfloat16_rows_are_the_same_alone_and_in_a_batch(cache):
    model = starr.load(dtype="bfloat16")
    prompts = [problem.prompt for problem in word_problems.load()[:3]]
    together = starr.generate(model, prompts, max_tokens=32, cache=cache)
    alone = [starr.generate(model, prompt, max_tokens=32, cache=cache).tokens for prompt in prompts]
    assert alone == [generation.tokens for generation in together]


@pytest.mark.parametrize("own", [None, False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_parts_of_the_queries_change_no_bit(monkeypatch, dtype, own):
    """``own``: no mask, one for all queries, or one for each."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 300, 32).to(dtype) for _ in range(3))
    mask = None if own is None else torch.rand(2, 1, 300 if own else 1, 300) > 0.3
    whole = even_attention(q, k, v, mask)
    monkeypatch.setattr(attention, "SCORES", 2 * 4 * 304 * 70)
    assert torch.equal(even_attention(q, k, v, mask), whole)
