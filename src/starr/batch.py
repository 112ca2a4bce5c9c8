"""Per-row options of the rows now in the batch, as tensors, and which rows go into which kind of forward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from starr import noise
from starr.canvas import Canvas
from starr.model.spec import ModelSpec
from starr.observe import Places
from starr.propose import Ask
from starr.query import Cache
from starr.request import Request
from starr.stop import Ruled

PROPOSAL_STREAM = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """What the rows asked for. Tensors are (B,); None where nobody needs it."""

    caches: list[tuple[Cache, Tensor]]  # each cache with its rows (K,) int64
    rules: list[Ruled]  # each stop rule with its rows (B,) bool
    plain: Tensor  # (K,) int64 rows of whole forwards
    buffered: Tensor  # (K,) int64 rows with a K/V buffer
    shadowed: Tensor  # (K,) int64 rows whose strategy wants the shadow block
    measures: bool  # some cache wants to know how far values moved
    signals: frozenset[str]
    revokes: Tensor
    temperature: Tensor | None
    top_p: Tensor | None
    top_k: Tensor | None
    guidance: Tensor | None
    eos_never: Tensor | None
    endless: bool  # some canvas has template text inside
    eos_last: Tensor | None


def kind_of(request: Request) -> str:
    if "shadow" in request.strategy.signals:
        return "shadowed"
    return "buffered" if request.cache.buffered else "plain"


def batch_of(requests: list[Request], device: torch.device) -> Batch:
    """What the rows of the batch asked for, made once whenever rows join or leave."""

    def rows_where(test: Callable[[Request], bool]) -> Tensor:
        return torch.tensor([i for i, r in enumerate(requests) if test(r)], dtype=torch.int64, device=device)

    def values(get: Callable[[Request], float], idle: float) -> Tensor | None:
        found = [get(r) for r in requests]
        return None if all(v == idle for v in found) else torch.tensor(found, device=device)

    def flags(found: list[bool]) -> Tensor:
        return torch.tensor(found, device=device)

    sampled = any(r.sampling.temperature > 0 for r in requests)
    caches = {r.cache: rows_where(lambda other, cache=r.cache: other.cache == cache) for r in requests}  # type: ignore[misc]
    rules = dict.fromkeys(rule for r in requests for rule in r.rules)
    return Batch(
        caches=list(caches.items()),
        rules=[(rule, flags([rule in r.rules for r in requests])) for rule in rules],
        plain=rows_where(lambda r: kind_of(r) == "plain"),
        buffered=rows_where(lambda r: kind_of(r) == "buffered"),
        shadowed=rows_where(lambda r: kind_of(r) == "shadowed"),
        measures=any(r.cache.measures for r in requests),
        signals=frozenset().union(*(r.strategy.signals for r in requests), *(rule.signals for rule in rules)),
        revokes=flags([r.strategy.revokes for r in requests]),
        temperature=values(lambda r: r.sampling.temperature, 0.0),
        top_p=values(lambda r: r.sampling.top_p, 1.0) if sampled else None,
        top_k=values(lambda r: r.sampling.top_k, 0) if sampled else None,
        guidance=values(lambda r: r.sampling.guidance, 0.0),
        eos_never=values(lambda r: r.sampling.eos == "never", False),
        endless=any(not r.ends for r in requests),
        eos_last=values(lambda r: r.sampling.eos == "last", False),
    )


def ask_of(batch: Batch, canvas: Canvas, where: Places, spec: ModelSpec, unguided: Tensor | None) -> Ask:
    """What ``propose`` must answer for the observed positions (B, O), flattened to N = B * O rows."""
    shape = where.index.shape

    def spread(values: Tensor | None) -> Tensor | None:
        return None if values is None else values[:, None].expand(shape).reshape(-1)

    banned = spread(batch.eos_never)
    if batch.endless:
        here = canvas.endless.gather(1, where.index).reshape(-1)
        banned = here if banned is None else banned | here
    key = None
    if batch.temperature is not None:
        position = where.index - canvas.start[:, None]
        key = noise.keys(canvas.seed[:, None], canvas.total[:, None], position, PROPOSAL_STREAM).reshape(-1)
    return Ask(
        mask_id=spec.mask_id,
        held=canvas.tokens.gather(1, where.index).reshape(-1),
        signals=batch.signals,
        temperature=spread(batch.temperature),
        top_p=spread(batch.top_p),
        top_k=spread(batch.top_k),
        key=key,
        banned=banned,
        banned_ids=spec.eos_ids,
        guidance=spread(batch.guidance),
        unguided=unguided,
    )
