"""LLaDA's bound on the log-likelihood of a target (arXiv:2502.09992, Eq. 6), exact for short targets.

For a target of L tokens: draw the number of masks k from 1..L and then which k positions are masked; the mean of
``L / k`` times the sum of log p over the masked positions is a lower bound on log p(target | context). It equals the
mean, over all orders in which the tokens can be decoded one at a time, of the sum of their log-probabilities.

The draws are seeded by the request itself and a forward holds patterns of one request only, so that a request has the
same value alone, in any batch and in any shard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.model.network.masks import block_causal, block_spans

if TYPE_CHECKING:
    from starr.model.load import Model

POSITIONS = {"cpu": 2048}  # of one forward, by device
MANY_POSITIONS = 16384  # of one forward elsewhere
HEAD_ROWS = 256  # hidden states turned into logits at once


@dataclass(frozen=True, slots=True)
class LikelihoodBound:
    """A lower bound on a log-likelihood, in nats, and what it cost."""

    value: float
    forwards: int = 0
    positions: int = 0


def every_pattern(length: int) -> tuple[Tensor, Tensor]:
    """All 2^L - 1 masks (N, L) bool and their weights (N,) float64: 1 / (k C(L, k)) for k masked positions."""
    numbers = torch.arange(1, 2**length)
    masks = (numbers[:, None] >> torch.arange(length)) & 1 == 1
    weight = torch.tensor([1 / (k * comb(length, k)) for k in range(1, length + 1)], dtype=torch.float64)
    return masks, weight[masks.sum(dim=1) - 1]


def drawn_patterns(length: int, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """``samples`` masks (N, L) and weights (N,): L / (k N); the counts step evenly from one offset (LLaDA)."""
    generator = torch.Generator().manual_seed(seed)
    offset = torch.randint(length, (1,), generator=generator)
    steps = torch.arange(samples) * length // samples
    counts = (offset + steps) % length + 1
    order = torch.rand(samples, length, generator=generator, dtype=torch.float64).argsort(dim=1).argsort(dim=1)
    return order < counts[:, None], length / (counts.double() * samples)


def patterns(length: int, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Every pattern where that is not more work than ``samples`` drawn ones."""
    exact = length < 32 and 2**length - 1 <= samples
    return every_pattern(length) if exact else drawn_patterns(length, samples, seed)


def seed_of(context: Sequence[int], target: Sequence[int], seed: int) -> int:
    """A number that depends on nothing but the request and the caller's seed."""
    text = f"{seed}|{list(context)}|{list(target)}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def log_likelihood(
    model: Model, context: Sequence[int], target: Sequence[int], samples: int, seed: int
) -> LikelihoodBound:
    """The bound for a target after a context of at least one token; an empty target is certain.

    A block-causal model decodes block after block, so its bound is the sum over the target's blocks, each after all
    that comes before it.
    """
    row, total = [*context, *target], LikelihoodBound(0.0)
    origin = model.spec.origin(len(context))
    for begin, end in spans(model, len(context), len(row)):
        before, some = row[:begin], row[begin:end]
        masks, weights = patterns(len(some), samples, seed_of(before, some, seed))
        value = (masked_sums(model, before, some, masks, origin) * weights).sum().item()
        total = LikelihoodBound(total.value + value, total.forwards + len(masks), total.positions + len(masks) * end)
    return total


def spans(model: Model, start: int, end: int) -> list[tuple[int, int]]:
    """The parts of the target's positions that are decoded together: all of them, or those of one block."""
    block = model.spec.block_length or max(end, 1)
    return block_spans(start, end, block, model.spec.origin(start))


@torch.inference_mode()
def masked_sums(model: Model, context: Sequence[int], target: Sequence[int], masks: Tensor, origin: int = 0) -> Tensor:
    """(N,) float64: for each pattern (N, L), the sum of log p of the tokens that it masks, given all others."""
    device, start = model.device, len(context)
    row = torch.tensor([*context, *target], device=device)
    wanted = torch.arange(start, len(row), device=device) - (1 if model.spec.shift else 0)
    at, block = torch.arange(len(row), device=device)[None] - origin, model.spec.block_length
    seen = None if block is None else block_causal(at, at, block)
    rows = max(1, POSITIONS.get(device.type, MANY_POSITIONS) // len(row))
    sums = []
    for mask in torch.split(masks.to(device), rows):
        tokens = row.repeat(len(mask), 1)
        tokens[:, start:][mask] = model.spec.mask_id
        attend = None if seen is None else seen.expand(len(mask), -1, -1)
        states = model.net(tokens, attend=attend, wanted=wanted.expand(len(mask), -1))
        found = torch.zeros(mask.shape, dtype=torch.float64, device=device)
        found[mask] = log_probabilities(model, states[mask], row[start:].expand(mask.shape)[mask])
        sums.append(found.sum(dim=1))
    return torch.cat(sums).cpu()


def log_probabilities(model: Model, states: Tensor, tokens: Tensor) -> Tensor:
    """(M,) float64: log p of ``tokens`` (M,) under hidden states (M, D), without all logits at once."""
    parts = []
    for some, wanted in zip(torch.split(states, HEAD_ROWS), torch.split(tokens, HEAD_ROWS), strict=True):
        logits = model.net.head(some).float()
        parts.append(logits.gather(1, wanted[:, None])[:, 0] - logits.logsumexp(dim=1))
    return torch.cat(parts).double()
