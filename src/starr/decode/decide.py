"""Rows of one batch may use different strategies: each group decides on its own rows, with its own carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from starr.decode.strategies.base import Strategy
from starr.decode.view import Carry, Decision, StepView, signal_of
from starr.errors import InputError, did_you_mean


@dataclass(frozen=True, slots=True)
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
        now, before, carry = [ids[i] for i in rows], old.get(strategy), None
        if before is not None and before.carry is not None:
            carry = {name: kept_rows(t, before.ids, now) for name, t in before.carry.items()}
        fresh.append(Group(strategy, torch.tensor(rows, device=device), now, carry))
    return fresh


def kept_rows(tensor: Tensor, before: list[int], now: list[int]) -> Tensor:
    """The rows of ``now`` from a tensor whose rows are ``before``; zeros for those that are new."""
    place = {row: i for i, row in enumerate(before)}
    padded = torch.cat([tensor, torch.zeros_like(tensor[:1])])
    return padded[torch.tensor([place.get(row, len(before)) for row in now], device=tensor.device)]


def decide(groups: list[Group], view: StepView, first: Tensor, opened: bool) -> tuple[Decision, list[Group]]:
    """The decision on all rows, and the groups with their memory after it.

    ``first`` (B,) bool: the row's very first step; ``opened``: some window is new.
    """
    if len(groups) == 1:
        decision, carry = decide_group(groups[0], view, first, opened)
        return decision, [replace(groups[0], carry=carry)]
    words = [decide_group(group, part_of(view, group), first[group.rows], opened) for group in groups]
    after = [replace(group, carry=carry) for group, (_, carry) in zip(groups, words, strict=True)]
    return merge([decision for decision, _ in words], groups, view), after


def decide_group(group: Group, view: StepView, first: Tensor, opened: bool) -> tuple[Decision, Carry]:
    """One strategy's decision on its rows, checked."""
    try:
        word = asked(group, view, first, opened)
    except AttributeError as error:
        rule = f"{group.strategy.name}.decide: {str(error).rstrip('.')}."
        raise InputError(rule, hint=advice(error), param="strategy") from error
    return checked(word, group.strategy, view)


def asked(group: Group, view: StepView, first: Tensor, opened: bool) -> object:
    """What ``decide`` returns; the memory starts over where a window is new, except for what the strategy keeps."""
    width = view.masked.shape[1]
    if group.carry is None:
        return group.strategy.decide(view, group.strategy.begin(view))
    carry = {name: fit(old, width) for name, old in group.carry.items()}
    if opened:
        fresh, keeps = group.strategy.begin(view), group.strategy.keeps
        carry = {
            name: renew(old, fresh[name], first if name in keeps else view.step == 0) for name, old in carry.items()
        }
    return group.strategy.decide(view, carry)


def advice(error: AttributeError) -> str:
    """What to write instead of an attribute that is not there."""
    if isinstance(error.obj, StepView):
        return did_you_mean(str(error.name), [name for name in dir(error.obj) if not name.startswith("_")])
    unasked = error.obj is None and error.name is not None
    return "A field of the view is None unless the strategy's signals name it." if unasked else ""


def checked(word: object, strategy: Strategy, view: StepView) -> tuple[Decision, Carry]:
    """What ``decide`` returned, if it is a decision on every position and a memory; a clear error otherwise."""
    shape, found = list(view.masked.shape), type(word).__name__
    if isinstance(word, tuple):
        found = " and ".join(type(part).__name__ for part in word)
    if isinstance(word, tuple) and len(word) == 2 and isinstance(word[0], Decision) and isinstance(word[1], Mapping):
        decision, carry = word
        action = decision.action
        if isinstance(action, Tensor) and list(action.shape) == shape and not action.is_floating_point():
            return decision, carry
        kind = str(getattr(action, "dtype", "")).removeprefix("torch.")
        found = f"{kind} of shape {list(action.shape)}" if isinstance(action, Tensor) else type(action).__name__
    raise InputError(
        f"{strategy.name}.decide must return a Decision, whose action is int8 of shape {shape}, and a dict; it gave"
        f" {found}.",
        hint="End with: return Decision(commits(chosen)), carry",
        param="strategy",
    )


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
    signals, rows = group.strategy.signals, group.rows
    dropped = {"entropy", "margin", "gap", "distribution", "noise"} - signals
    values = {f.name: getattr(view, f.name) for f in fields(view) if f.name != "extras"}
    kept = {name: None if v is None or name in dropped else v.index_select(0, rows) for name, v in values.items()}
    told = {name: value.index_select(0, rows) for name, value in view.extras.items() if signal_of(name) in signals}
    return StepView(**kept, extras=told)  # type: ignore[arg-type]


def merge(parts: list[Decision], groups: list[Group], view: StepView) -> Decision:
    """One decision for the batch. A field that no group set stays None; a group that did not set it leaves blanks."""
    blank = {
        "action": torch.zeros_like(view.tokens, dtype=torch.int8),
        "threshold": torch.full_like(view.confidence, torch.nan),
        "label": torch.zeros_like(view.tokens, dtype=torch.int8),
        "doubt": torch.full_like(view.confidence, torch.nan),
        "order": torch.full_like(view.confidence, torch.nan, dtype=torch.float64),
        "tokens": view.proposal,
        "end": torch.full_like(view.step, -1),
    }
    whole: dict[str, Tensor] = {}
    extras: dict[str, Tensor] = {}
    for part, group in zip(parts, groups, strict=True):
        for name, empty in blank.items():
            value = getattr(part, name)
            if value is not None:
                whole[name] = whole.get(name, empty).index_copy(0, group.rows, value.to(empty.dtype))
        for name, value in part.extras.items():
            empty = extras.get(name, value.new_zeros(len(view.step), *value.shape[1:]))
            extras[name] = empty.index_copy(0, group.rows, value)
    return Decision(**whole, extras=extras)
