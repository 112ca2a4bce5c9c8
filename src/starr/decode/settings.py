"""What the rows now in the batch asked for, as tensors; made once whenever rows join or leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from starr.decode.blocks import BlockRows
from starr.decode.caches.base import Cache
from starr.decode.request import Request
from starr.decode.stops.base import Ruled, StopRule


@dataclass(frozen=True, slots=True)
class RowSettings:
    """Options of B rows. Tensors are (B,) unless said; None where no row needs it."""

    caches: list[tuple[Cache, Tensor]]  # each cache with its rows (K,) int64
    rules: list[Ruled]  # stop rules with their rows (B,) bool, each row's in its own order
    plain: Tensor  # (K,) int64: rows of whole forwards
    buffered: Tensor  # (K,) int64: rows with a K/V buffer
    signals: frozenset[str]
    revokes: Tensor  # the strategy acts on held tokens
    revocable: Tensor  # held tokens may be taken back, by the strategy or because they are verified
    crowd: Tensor | None  # all shadows of the row see each other
    temperature: Tensor | None
    top_p: Tensor | None
    top_k: Tensor | None
    min_p: Tensor | None
    guidance: Tensor | None
    eos_never: Tensor | None
    blocks: BlockRows | None  # of a block-causal model
    endless: bool  # some canvas has template text inside
    eos_last: Tensor | None


def settings_of(requests: Sequence[Request], device: torch.device, *, shift: bool = False) -> RowSettings:
    """The settings of the requests; ``shift`` is the model's."""

    def rows_where(test: Callable[[Request], bool]) -> Tensor:
        return torch.tensor([i for i, r in enumerate(requests) if test(r)], dtype=torch.int64, device=device)

    def values(get: Callable[[Request], float], idle: float) -> Tensor | None:
        found = [get(r) for r in requests]
        return None if all(v == idle for v in found) else torch.tensor(found, device=device)

    def flags(found: list[bool]) -> Tensor:
        return torch.tensor(found, device=device)

    sampled = any(r.options.temperature > 0 for r in requests)
    caches = {r.cache: rows_where(lambda other, cache=r.cache: other.cache == cache) for r in requests}  # type: ignore[misc]
    rules = in_order([r.rules for r in requests])
    return RowSettings(
        caches=list(caches.items()),
        rules=[(rule, flags(rows)) for rule, rows in rules],
        plain=rows_where(lambda r: not r.cache.buffered),
        buffered=rows_where(lambda r: r.cache.buffered),
        signals=frozenset().union(
            *(r.strategy.signals for r in requests),
            *(rule.signals for rule, _ in rules),
            *({"distribution"} for r in requests if r.candidates),
        ),
        revokes=flags([r.strategy.revokes() for r in requests]),
        revocable=flags([r.strategy.revokes() or r.options.verify > 0 for r in requests]),
        crowd=values(lambda r: "shadow" in r.strategy.needs(), False),
        temperature=values(lambda r: r.options.temperature, 0.0),
        top_p=values(lambda r: r.options.top_p, 1.0) if sampled else None,
        top_k=values(lambda r: r.options.top_k, 0) if sampled else None,
        min_p=values(lambda r: r.options.min_p, 0.0) if sampled else None,
        guidance=values(lambda r: r.options.guidance, 0.0),
        eos_never=values(lambda r: r.options.eos == "never", False),
        blocks=BlockRows.of(requests, shift, device),
        endless=any(not r.ends for r in requests),
        eos_last=values(lambda r: r.options.eos == "last", False),
    )


def in_order(rules: Sequence[Sequence[StopRule]]) -> list[tuple[StopRule, list[bool]]]:
    """Rules with the rows that they are for: the first ones of all rows, then the second ones, and so on.

    The first matching rule wins, so a row's order may not depend on its neighbours.
    """
    found = []
    for place in range(max(map(len, rules), default=0)):
        here = [own[place] if place < len(own) else None for own in rules]
        found += [(rule, [own == rule for own in here]) for rule in dict.fromkeys(here) if rule is not None]
    return found
