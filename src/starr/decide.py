"""Rows of one batch may use different strategies: each group decides on its own rows, with its own carry."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.strategy.base import Carry, Decision, StepView, Strategy


@dataclass(slots=True)
class Group:
    """The rows of one strategy, and its memory."""

    strategy: Strategy
    rows: Tensor  # (K,) int64 into the batch
    ids: list[int]
    carry: Carry | None = None


def regroup(groups: list[Group], ids: list[int], strategies: list[Strategy], device: torch.device) -> list[Group]:
    """Groups for the rows now in the batch; rows that stay keep their memory, new ones start from zeros."""
    old = {group.strategy: group for group in groups}
    fresh = []
    for strategy in dict.fromkeys(strategies):
        rows = [i for i, s in enumerate(strategies) if s == strategy]
        group = Group(strategy, torch.tensor(rows, device=device), [ids[i] for i in rows])
        before = old.get(strategy)
        if before is not None and before.carry is not None:
            group.carry = {name: kept_rows(t, before.ids, group.ids) for name, t in before.carry.items()}
        fresh.append(group)
    return fresh


def kept_rows(tensor: Tensor, before: list[int], now: list[int]) -> Tensor:
    """The rows of ``now`` from a tensor whose rows are ``before``; zeros for those that are new."""
    place = {row: i for i, row in enumerate(before)}
    padded = torch.cat([tensor, torch.zeros_like(tensor[:1])])
    return padded[torch.tensor([place.get(row, len(before)) for row in now], device=tensor.device)]


def decide(groups: list[Group], view: StepView, first: Tensor, opened: bool) -> Decision:
    """The decision on all rows. ``first`` (B,) bool: the row's very first step; ``opened``: some window is new."""
    if len(groups) == 1:
        return decide_group(groups[0], view, first, opened)
    parts = [decide_group(g, part_of(view, g), first[g.rows], opened) for g in groups]
    return merge(parts, groups, view)


def decide_group(group: Group, view: StepView, first: Tensor, opened: bool) -> Decision:
    """One strategy's decision on its rows; its memory begins anew where a window is new, but for what it keeps."""
    width = view.masked.shape[1]
    if group.carry is None:
        group.carry = group.strategy.begin(view)
    elif opened:
        fresh = group.strategy.begin(view)
        group.carry = {
            name: renew(fit(old, width), fresh[name], first if name in group.strategy.keeps else view.step == 0)
            for name, old in group.carry.items()
        }
    else:
        group.carry = {name: fit(old, width) for name, old in group.carry.items()}
    decision, group.carry = group.strategy.decide(view, group.carry)
    return decision


def fit(tensor: Tensor, width: int) -> Tensor:
    """A window-shaped carry (K, W, ...) at another width; rows' own carries (K,) pass."""
    if tensor.dim() == 1 or tensor.shape[1] == width:
        return tensor
    if tensor.shape[1] > width:
        return tensor[:, :width]
    return F.pad(tensor, (0, 0) * (tensor.dim() - 2) + (0, width - tensor.shape[1]))


def renew(old: Tensor, fresh: Tensor, where: Tensor) -> Tensor:
    """``fresh`` in the rows ``where`` (K,) bool, ``old`` in the others."""
    return torch.where(where.view(-1, *[1] * (old.dim() - 1)), fresh, old)


def part_of(view: StepView, group: Group) -> StepView:
    """The group's rows, with only the optional signals that it asked for."""
    optional = {"entropy", "margin", "distribution", "shadow", "noise"}
    values = {f.name: getattr(view, f.name) for f in fields(view)}
    dropped: dict[str, Any] = dict.fromkeys(optional - group.strategy.signals)
    kept = {k: v.index_select(0, group.rows) for k, v in values.items() if v is not None and k not in dropped}
    return replace(view, **kept | dropped)


def merge(parts: list[Decision], groups: list[Group], view: StepView) -> Decision:
    """One decision for the batch; fields that no group set stay None, others are filled with what means nothing."""
    blank = {
        "action": torch.zeros_like(view.tokens, dtype=torch.int8),
        "threshold": torch.full_like(view.confidence, torch.nan),
        "label": torch.zeros_like(view.tokens, dtype=torch.int8),
        "doubt": torch.full_like(view.confidence, torch.nan),
        "tokens": view.proposal,
        "end": torch.full_like(view.step, -1),
        "grow": torch.zeros_like(view.step),
        "grow_at": torch.zeros_like(view.step),
    }
    whole: dict[str, Tensor] = {}
    for part, group in zip(parts, groups, strict=True):
        for name, empty in blank.items():
            value = getattr(part, name)
            if value is not None:
                whole[name] = whole.get(name, empty).index_copy(0, group.rows, value.to(empty.dtype))
    return Decision(**whole)
