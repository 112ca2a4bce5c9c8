"""Hidden states to candidate tokens and their probabilities, in row chunks, in float32, without a full softmax.

Letters: N asked rows (positions of any batch row), D width, V vocabulary. Confidence is 1 / sum(exp(logit - max)),
which keeps full precision near 1, rounded to a grid of 2^-16: float noise of different batch shapes cannot reorder
tokens. Those that saturate there are told apart by their log-odds, on a grid of 2^-10. Entropies and probabilities of
held tokens have a grid that is finer near 0, so that the least of them keep their order. The mask id is at -inf, so it
is never proposed. Ties go to the lower token id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor

from starr.decode import noise
from starr.decode.caches.exact import only_first
from starr.decode.confidence import log_odds, on_grid, on_logit_grid, on_small_grid
from starr.decode.forward import ForwardCall
from starr.model.spec import ModelSpec

CHUNK_BYTES = 128 << 20
PROPOSAL_STREAM = 0

LogitEdit = Callable[[Tensor, slice], object]
"""Changes float32 logits (n, V) of the rows ``slice`` in place."""
Reader = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(n, ...) from the likeliest tokens (n,), the weights (n, V) of all others, and the sum (n,) of all weights.

The likeliest token has the weight 1, and its own entry among the others is 0.
"""


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """What is wanted of N rows. Per-row tensors are (N,); None means nobody in the batch needs it."""

    mask_id: int
    held: Tensor  # int64: the token whose own probability is asked; anything where masked
    signals: frozenset[str] = frozenset()
    temperature: Tensor | None = None
    top_p: Tensor | None = None
    top_k: Tensor | None = None
    min_p: Tensor | None = None
    key: Tensor | None = None  # noise keys, with temperature
    banned: Tensor | None = None  # bool: ``banned_ids`` are never proposed here
    banned_ids: tuple[int, ...] = ()
    guidance: Tensor | None = None  # scale per row, with ``unguided``
    unguided: Tensor | None = None  # (N, D) hidden states of the canvas whose prompt is masked
    edits: tuple[LogitEdit, ...] = ()  # of guests
    readers: Mapping[str, Reader] = field(default_factory=dict)  # of guests
    part: slice = field(default_factory=lambda: slice(None))  # which of all rows these are

    def rows(self, part: slice) -> ProposalRequest:
        """The same for some of the rows."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        some: dict[str, Any] = {name: v[part] for name, v in values.items() if isinstance(v, Tensor)}
        return replace(self, **some, part=part)


@dataclass(frozen=True, slots=True)
class Proposals:
    """Answers for N rows."""

    token: Tensor  # (N,) int64
    confidence: Tensor  # (N,) float32: probability of ``token``
    best: Tensor  # (N,) float32: probability of the most likely token
    own: Tensor  # (N,) float32: probability of the held token
    odds: Tensor | None = None  # (N,) float32: log-odds of the most likely token
    entropy: Tensor | None = None  # (N,) float32, nats
    margin: Tensor | None = None  # (N,) float32: best minus second
    gap: Tensor | None = None  # (N,) float32: best minus second logit
    logits: Tensor | None = None  # (N, V) float32
    read: Mapping[str, Tensor] = field(default_factory=dict)  # (N, ...): the readers' answers, by name


def proposal_request(call: ForwardCall, spec: ModelSpec, unguided: Tensor | None) -> ProposalRequest:
    """What ``propose`` must answer for the observed positions (B, O), flattened to N = B * O rows.

    The first token of a block is never drawn at random where it comes from the seal.
    """
    canvas, settings, where = call.canvas, call.settings, call.observed
    shape, temperature = where.index.shape, settings.temperature
    if temperature is not None and settings.blocks is not None:
        temperature = temperature.masked_fill(only_first(canvas, settings.blocks.shift), 0.0)

    def spread(values: Tensor | None) -> Tensor | None:
        return None if values is None else values[:, None].expand(shape).reshape(-1)

    banned = spread(settings.eos_never)
    if settings.endless:
        here = canvas.rules.endless.gather(1, where.index).reshape(-1)
        banned = here if banned is None else banned | here
    key = None
    if settings.temperature is not None:
        position = where.index - canvas.rules.start[:, None]
        key = noise.keys(canvas.rules.seed[:, None], canvas.total[:, None], position, PROPOSAL_STREAM).reshape(-1)
    return ProposalRequest(
        mask_id=spec.mask_id,
        held=canvas.tokens.gather(1, where.index).reshape(-1),
        signals=settings.signals,
        temperature=spread(temperature),
        top_p=spread(settings.top_p),
        top_k=spread(settings.top_k),
        min_p=spread(settings.min_p),
        key=key,
        banned=banned,
        banned_ids=spec.eos_ids,
        guidance=spread(settings.guidance),
        unguided=unguided,
    )


def propose(head: Callable[[Tensor], Tensor], hidden: Tensor, request: ProposalRequest, vocab_size: int) -> Proposals:
    """Propose for hidden states (N, D); at no time do more logits exist than those of one chunk (unless asked for)."""
    rows = max(1, CHUNK_BYTES // (4 * vocab_size))
    if hidden.shape[0] <= rows:
        return propose_chunk(logits_of(head, hidden, request), request)
    parts = []
    for i in range(0, hidden.shape[0], rows):
        some = request.rows(slice(i, i + rows))
        parts.append(propose_chunk(logits_of(head, hidden[i : i + rows], some), some))
    joined = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Proposals) if f.name != "read"}
    whole: dict[str, Any] = {name: torch.cat(v) for name, v in joined.items() if v[0] is not None}
    return Proposals(**whole, read={name: torch.cat([part.read[name] for part in parts]) for name in request.readers})


def logits_of(head: Callable[[Tensor], Tensor], hidden: Tensor, request: ProposalRequest) -> Tensor:
    """Float32 logits (N, V) with the mask id and banned ids at -inf, guided and edited.

    Guidance (LLaDA, cfg_scale s): unguided + (s + 1) (guided - unguided).
    """
    logits = head(hidden).float()
    if request.guidance is not None and request.unguided is not None:
        plain = head(request.unguided).float()
        logits = plain + (request.guidance[:, None] + 1.0) * (logits - plain)
    logits[:, request.mask_id] = -torch.inf
    if request.banned is not None:
        for token in request.banned_ids:
            logits[:, token].masked_fill_(request.banned, -torch.inf)
    for edit in request.edits:
        edit(logits, request.part)
    return logits


def propose_chunk(logits: Tensor, request: ProposalRequest) -> Proposals:
    """Answers from float32 logits (N, V), which are overwritten."""
    kept = logits.clone() if "distribution" in request.signals else None
    second = logits.topk(2, dim=1).values[:, 1] if request.signals & {"margin", "gap"} else None
    top, likeliest = logits.max(dim=1)
    token = likeliest
    if request.temperature is not None:
        token = sample(logits, request)
    chosen = logits.gather(1, token[:, None])[:, 0] - top
    own = logits.gather(1, request.held[:, None])[:, 0] - top
    logits.sub_(top[:, None])
    dot = weighted_sum(logits) if "entropy" in request.signals else None
    others = logits.exp_().scatter_(1, likeliest[:, None], 0.0)
    rest = others.sum(dim=1)
    total = 1.0 + rest
    return Proposals(
        token=token,
        confidence=on_grid(chosen.exp() / total),
        best=on_grid(total.reciprocal()),
        own=on_small_grid(own.exp() / total),
        odds=log_odds(rest),
        entropy=None if dot is None else on_small_grid(rest.log1p() - dot / total),
        margin=None if second is None else on_grid((1.0 - (second - top).exp()) / total),
        gap=None if second is None else on_logit_grid(top - second),
        logits=kept,
        read={name: read(likeliest, others, total) for name, read in request.readers.items()},
    )


def weighted_sum(shifted: Tensor) -> Tensor:
    """sum x exp(x) over the vocabulary, a few rows at a time; exp(x) is 0 far before x matters, so x is clamped."""
    parts = [rows.clamp(min=-1e4).mul_(rows.exp()).sum(dim=1) for rows in torch.split(shifted, 8)]
    return torch.cat(parts)


def sample(logits: Tensor, request: ProposalRequest) -> Tensor:
    """Gumbel-max: argmax of logits + temperature * noise within top-p, top-k and min-p; temperature 0 is greedy."""
    if request.temperature is None or request.key is None:
        raise ValueError("sampling needs temperature and key")
    temperature = request.temperature[:, None]
    allowed = logits
    scaled = logits / temperature.clamp(min=1e-6)
    if request.top_p is not None or request.top_k is not None:
        allowed = logits.masked_fill(~nucleus(scaled, request.top_p, request.top_k), -torch.inf)
    if request.min_p is not None:
        allowed = allowed.masked_fill(~likely_enough(scaled, request.min_p), -torch.inf)
    return (allowed + temperature * noise.gumbel(request.key, logits.shape[1])).argmax(dim=1)


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


def likely_enough(scaled: Tensor, min_p: Tensor) -> Tensor:
    """Which tokens (N, V) have at least the share ``min_p`` (N,) of the likeliest one's probability."""
    return scaled >= scaled.max(dim=1, keepdim=True).values + min_p.log()[:, None]


def postpone_eos(found: Proposals, call: ForwardCall, eos_ids: Tensor, vocab_size: int) -> Proposals:
    """Proposed ends of text made as unsure as can be, in the rows that want to commit them last.

    Confidence, margin and gap become 0, entropy ln V; the distribution stays as it is.
    """
    last = call.settings.eos_last
    if last is None:
        return found
    rows = last[:, None].expand(call.observed.index.shape).reshape(-1)
    late = torch.isin(found.token, eos_ids) & rows
    return replace(
        found,
        confidence=found.confidence.masked_fill(late, 0.0),
        margin=None if found.margin is None else found.margin.masked_fill(late, 0.0),
        gap=None if found.gap is None else found.gap.masked_fill(late, 0.0),
        entropy=None if found.entropy is None else found.entropy.masked_fill(late, math.log(vocab_size)),
    )
