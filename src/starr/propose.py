"""Hidden states to candidate tokens and their probabilities, in row chunks, in float32, without a full softmax.

Letters: N asked rows (positions of any batch row), D width, V vocabulary. Confidence is 1 / sum(exp(logit - max)),
which keeps full precision near 1, rounded to a grid of 2^-16: float noise of different batch shapes cannot reorder
saturated tokens. The mask id is at -inf, so it is never proposed. Ties go to the lower token id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from starr import noise
from starr.confidence import on_grid

CHUNK_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted of N rows. Per-row tensors are (N,); None means nobody in the batch needs it."""

    mask_id: int
    held: Tensor  # int64: the token whose own probability is asked; anything where masked
    signals: frozenset[str] = frozenset()
    temperature: Tensor | None = None
    top_p: Tensor | None = None
    top_k: Tensor | None = None
    key: Tensor | None = None  # noise keys, with temperature
    banned: Tensor | None = None  # bool: ``banned_ids`` are never proposed here
    banned_ids: tuple[int, ...] = ()
    guidance: Tensor | None = None  # scale per row, with ``unguided``
    unguided: Tensor | None = None  # (N, D) hidden states of the canvas whose prompt is masked

    def rows(self, part: slice) -> Ask:
        """The same for some of the rows."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        some: dict[str, Any] = {name: v[part] for name, v in values.items() if isinstance(v, Tensor)}
        return replace(self, **some)


@dataclass(frozen=True, slots=True)
class Proposals:
    """Answers for N rows."""

    token: Tensor  # (N,) int64
    confidence: Tensor  # (N,) float32: probability of ``token``
    best: Tensor  # (N,) float32: probability of the most likely token
    own: Tensor  # (N,) float32: probability of the held token
    entropy: Tensor | None = None  # (N,) float32, nats
    margin: Tensor | None = None  # (N,) float32: best minus second
    logits: Tensor | None = None  # (N, V) float32


def propose(head: Callable[[Tensor], Tensor], hidden: Tensor, ask: Ask, vocab_size: int) -> Proposals:
    """Propose for hidden states (N, D); at no time do more logits exist than those of one chunk (unless asked for)."""
    rows = max(1, CHUNK_BYTES // (4 * vocab_size))
    if hidden.shape[0] <= rows:
        return propose_chunk(logits_of(head, hidden, ask), ask)
    parts = []
    for i in range(0, hidden.shape[0], rows):
        some = ask.rows(slice(i, i + rows))
        parts.append(propose_chunk(logits_of(head, hidden[i : i + rows], some), some))
    joined = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Proposals)}
    return replace(parts[0], **{name: torch.cat(v) for name, v in joined.items() if v[0] is not None})


def logits_of(head: Callable[[Tensor], Tensor], hidden: Tensor, ask: Ask) -> Tensor:
    """Float32 logits (N, V) with the mask id (and banned ids) at -inf and guidance applied.

    Guidance (LLaDA, cfg_scale s): unguided + (s + 1) (guided - unguided).
    """
    logits = head(hidden).float()
    if ask.guidance is not None and ask.unguided is not None:
        plain = head(ask.unguided).float()
        logits = plain + (ask.guidance[:, None] + 1.0) * (logits - plain)
    logits[:, ask.mask_id] = -torch.inf
    if ask.banned is not None:
        for token in ask.banned_ids:
            logits[:, token].masked_fill_(ask.banned, -torch.inf)
    return logits


def propose_chunk(logits: Tensor, ask: Ask) -> Proposals:
    """Answers from float32 logits (N, V), which are overwritten."""
    kept = logits.clone() if "distribution" in ask.signals else None
    second = logits.topk(2, dim=1).values[:, 1] if "margin" in ask.signals else None
    top, token = logits.max(dim=1)
    if ask.temperature is not None:
        token = sample(logits, ask)
    chosen = logits.gather(1, token[:, None])[:, 0] - top
    own = logits.gather(1, ask.held[:, None])[:, 0] - top
    logits.sub_(top[:, None])
    dot = weighted_sum(logits) if "entropy" in ask.signals else None
    total = logits.exp_().sum(dim=1)
    return Proposals(
        token=token,
        confidence=on_grid(chosen.exp() / total),
        best=on_grid(total.reciprocal()),
        own=on_grid(own.exp() / total),
        entropy=None if dot is None else on_grid(total.log() - dot / total),
        margin=None if second is None else on_grid((1.0 - (second - top).exp()) / total),
        logits=kept,
    )


def weighted_sum(shifted: Tensor) -> Tensor:
    """sum x exp(x) over the vocabulary, a few rows at a time; exp(x) is 0 far before x matters, so x is clamped."""
    parts = [rows.clamp(min=-1e4).mul_(rows.exp()).sum(dim=1) for rows in torch.split(shifted, 8)]
    return torch.cat(parts)


def sample(logits: Tensor, ask: Ask) -> Tensor:
    """Gumbel-max: argmax of logits + temperature * noise within top-p and top-k; temperature 0 is greedy."""
    if ask.temperature is None or ask.key is None:
        raise ValueError("sampling needs temperature and key")
    temperature = ask.temperature[:, None]
    allowed = logits
    if ask.top_p is not None or ask.top_k is not None:
        allowed = logits.masked_fill(~nucleus(logits / temperature.clamp(min=1e-6), ask.top_p, ask.top_k), -torch.inf)
    return (allowed + temperature * noise.gumbel(ask.key, logits.shape[1])).argmax(dim=1)


def nucleus(scaled: Tensor, top_p: Tensor | None, top_k: Tensor | None) -> Tensor:
    """Which tokens (N, V) remain: the fewest whose probability reaches top_p, and at most top_k (0 is no limit)."""
    ordered, order = scaled.sort(dim=1, descending=True, stable=True)
    keep = torch.ones_like(ordered, dtype=torch.bool)
    if top_p is not None:
        probability = ordered.softmax(dim=1)
        keep &= probability.cumsum(dim=1) - probability < top_p[:, None]
    if top_k is not None:
        rank = torch.arange(scaled.shape[1], device=scaled.device)
        keep &= (top_k[:, None] == 0) | (rank < top_k[:, None])
    return torch.empty_like(keep).scatter_(1, order, keep)
