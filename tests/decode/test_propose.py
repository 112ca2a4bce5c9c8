"""Proposals against a plain float64 softmax, their memory, and the noise behind sampling."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from starr.decode import noise, propose
from starr.decode.propose import ProposalRequest, likely_enough, nucleus

MASK = 3


def ask(rows: int, vocab: int, **more) -> ProposalRequest:
    return ProposalRequest(MASK, torch.arange(rows) % vocab, **more)


def identity(hidden: torch.Tensor) -> torch.Tensor:
    return hidden.clone()


@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(0.1, 30))
@settings(deadline=None, max_examples=60)
def test_equals_a_full_softmax(seed, rows, scale):
    logits = torch.randn(rows, 17, generator=torch.Generator().manual_seed(seed)) * scale
    wanted = frozenset({"entropy", "margin", "distribution"})
    found = propose.propose(identity, logits, ask(rows, 17, signals=wanted), 17)
    exact = logits.double().index_fill(1, torch.tensor([MASK]), -torch.inf).softmax(1)
    top = exact.topk(2).values
    assert MASK not in found.token.tolist()
    assert torch.equal(found.token, exact.argmax(1))
    close = {"rtol": 0, "atol": 2e-5}
    assert torch.allclose(found.confidence.double(), top[:, 0], **close)
    assert torch.allclose(found.best, found.confidence)
    assert torch.allclose(found.own.double(), exact.gather(1, (torch.arange(rows) % 17)[:, None])[:, 0], **close)
    assert torch.allclose(found.margin.double(), top[:, 0] - top[:, 1], **close)
    assert torch.allclose(found.entropy.double(), -torch.special.xlogy(exact, exact).sum(1), rtol=0, atol=1e-4)


def test_chunks_give_what_one_pass_gives(monkeypatch):
    logits = torch.randn(50, 33)
    whole = propose.propose(identity, logits, ask(50, 33), 33)
    monkeypatch.setattr(propose, "CHUNK_BYTES", 4 * 33 * 7)
    parts = propose.propose(identity, logits, ask(50, 33), 33)
    assert torch.equal(whole.token, parts.token)
    assert torch.equal(whole.confidence, parts.confidence)


MEMORY = """
import torch
from pathlib import Path
from starr.decode import propose
def status(key):
    line = next(l for l in Path("/proc/self/status").read_text().splitlines() if l.startswith(key))
    return int(line.split()[1]) * 1024
vocab, width = 126_464, 8
weight, hidden = torch.randn(vocab, width), torch.randn(256, width)
head = lambda x: torch.nn.functional.linear(x, weight)
held = torch.zeros(256, dtype=torch.int64)
with torch.inference_mode():
    propose.propose(head, hidden[:1], propose.ProposalRequest(0, held[:1]), vocab)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    propose.propose(head, hidden, propose.ProposalRequest(0, held), vocab)
print((status("VmHWM") - before) / (propose.CHUNK_BYTES // (4 * vocab) * 4 * vocab))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's high-water mark")
def test_memory_stays_near_one_chunk():
    """On 256 x 126,464 logits a process grows by less than 1.3 times the logits of one chunk."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert 0.5 < float(done.stdout) < 1.3


def test_no_float64_anywhere():
    kinds = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **kwargs or {})
            kinds.update(t.dtype for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor))
            return out

    with Watch():
        propose.propose(identity, torch.randn(4, 50), ask(4, 50, signals=frozenset({"entropy", "margin"})), 50)
    assert torch.float32 in kinds
    assert torch.float64 not in kinds


def test_ties_go_to_the_lower_token():
    found = propose.propose(identity, torch.zeros(2, 9), ask(2, 9), 9)
    assert found.token.tolist() == [0, 0]


def test_banned_ids_are_never_proposed():
    logits = torch.zeros(2, 9)
    logits[:, 5] = 10.0
    banned = torch.tensor([True, False])
    found = propose.propose(identity, logits, ask(2, 9, banned=banned, banned_ids=(5,)), 9)
    assert found.token.tolist() == [0, 5]


def test_guidance_follows_the_formula():
    hidden, plain, scale = torch.randn(4, 9), torch.randn(4, 9), torch.tensor([0.0, 0.5, 1.0, 2.0])
    logits = propose.logits_of(identity, hidden, ask(4, 9, guidance=scale, unguided=plain))
    expected = plain + (scale[:, None] + 1) * (hidden - plain)
    kept = [i for i in range(9) if i != MASK]
    assert torch.allclose(logits[:, kept], expected[:, kept], atol=1e-6)


def test_sampling_follows_the_distribution_and_the_seed():
    logits = torch.tensor([2.0, 1.0, 0.0, 5.0, -1.0]).expand(20_000, 5)
    key = noise.keys(torch.tensor(7), torch.arange(20_000), torch.tensor(0), 0)
    more = {"temperature": torch.full((20_000,), 1.3), "key": key}
    token = propose.propose(identity, logits, ask(20_000, 5, **more), 5).token
    expected = (logits[0] / 1.3).index_fill(0, torch.tensor([MASK]), -torch.inf).softmax(0)
    assert torch.allclose(token.bincount(minlength=5) / 20_000, expected, atol=0.015)
    assert torch.equal(token, propose.propose(identity, logits, ask(20_000, 5, **more), 5).token)


@given(st.lists(st.floats(-8, 8), min_size=1, max_size=9), st.floats(0, 1))
def test_min_p_keeps_what_has_its_share_of_the_likeliest(logits, share):
    shares = [math.exp(logit - max(logits)) for logit in logits]
    kept = likely_enough(torch.tensor([logits], dtype=torch.float64), torch.tensor([share], dtype=torch.float64))
    clear = [i for i, each in enumerate(shares) if abs(each - share) > 1e-9]
    assert [bool(kept[0, i]) for i in clear] == [shares[i] > share for i in clear]
    assert kept.any()


@pytest.mark.parametrize(("top_p", "top_k", "kept"), [(0.6, 0, 1), (0.7, 0, 2), (1.0, 2, 2), (1.0, 0, 4), (0.01, 0, 1)])
def test_nucleus_keeps_the_fewest(top_p, top_k, kept):
    scaled = torch.tensor([[0.1, 0.2, 0.05, 0.65]]).log()
    mask = nucleus(scaled, torch.tensor([top_p]), torch.tensor([top_k]))
    assert mask.sum() == kept
    assert mask[0, 3]


def test_noise_is_uniform_and_independent_of_company():
    key = noise.keys(torch.arange(200)[:, None], torch.tensor(3), torch.arange(500)[None], 1)
    draw = noise.uniform(key)
    assert 0 < draw.min() < 0.001
    assert 0.999 < draw.max() < 1
    assert abs(draw.mean() - 0.5) < 0.005
    assert abs(torch.corrcoef(draw[:2])[0, 1]) < 0.15
    assert torch.equal(draw[5], noise.uniform(noise.keys(torch.tensor(5), torch.tensor(3), torch.arange(500), 1)))
