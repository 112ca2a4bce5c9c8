"""What a strategy sees, says and remembers.

Letters: B rows, W window positions, V vocabulary. All tensors of one step share (B, W): rows may be at different steps
of different windows; positions beyond a row's own width are padding and count as frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import torch
from torch import Tensor

from starr.strategy.registry import check

Carry = Mapping[str, Tensor]
"""A strategy's memory. Tensors of shape (B,) belong to the row, (B, W, ...) to the window's positions."""


class Action(IntEnum):
    """What happens to a position in a step; also the alphabet of traces."""

    KEEP = 0
    COMMIT = 1
    REVOKE = 2
    REVISE = 3


class Label(IntEnum):
    """Why a position was acted on, where it was not a plain threshold."""

    NONE = 0
    SLOW = 1
    FAST = 2


@dataclass(frozen=True, slots=True)
class StepView:
    """Everything a strategy may read in one step, and nothing that it may change."""

    tokens: Tensor  # (B, W) int64, the mask id where masked
    masked: Tensor  # (B, W) bool
    frozen: Tensor  # (B, W) bool: template tokens inside the window, and padding beyond its width
    proposal: Tensor  # (B, W) int64: the candidate token; never the mask id
    confidence: Tensor  # (B, W) float32: probability of the proposal where masked, of the held token where held
    best: Tensor  # (B, W) float32: probability of the most likely token
    step: Tensor  # (B,) int64: steps already taken in this window
    width: Tensor  # (B,) int64: positions of the row's window
    windows: Tensor  # (B,) int64: windows (blocks) the row's canvas is split into
    block: Tensor  # (B,) int64: the row's block length (its whole canvas without blocks)
    entropy: Tensor | None = None  # (B, W) float32, nats; as all below, only where its name is among the signals
    margin: Tensor | None = None  # (B, W) float32: best minus second probability
    distribution: Tensor | None = None  # (B, W, V) float32 logits, the mask id at -inf, zeros where not observed
    shadow: Tensor | None = None  # (B, W) float32: leave-one-out probability of the held token
    noise: Tensor | None = None  # (B, W) float32: uniform in (0, 1), from seed, step and position

    @property
    def inside(self) -> Tensor:
        """(B, W) bool: the row's own positions, padding excluded."""
        return torch.arange(self.masked.shape[1], device=self.masked.device) < self.width[:, None]

    @property
    def held(self) -> Tensor:
        """(B, W) bool: committed and still revocable."""
        return ~(self.masked | self.frozen)


@dataclass(frozen=True, slots=True)
class Decision:
    """A strategy's word on every position; ``enforce`` decides what of it is done."""

    action: Tensor  # (B, W) int8, values of Action
    threshold: Tensor | None = None  # (B, W) float32: what confidence was compared with
    label: Tensor | None = None  # (B, W) int8, values of Label
    doubt: Tensor | None = None  # (B, W) float32: which revocations matter most; threshold - confidence if None
    tokens: Tensor | None = None  # (B, W) int64: what to write on COMMIT and REVISE; the proposal if None
    end: Tensor | None = None  # (B,) int64: the window now ends this many positions after its start
    grow: Tensor | None = None  # (B,) int64: masks to insert ...
    grow_at: Tensor | None = None  # (B,) int64: ... behind this window position


class Strategy:
    """A frozen dataclass of options and one pure method.

    Subclasses add ``@register`` above ``@dataclass(frozen=True, kw_only=True)``; their options are checked when made.
    ``signals`` names the optional StepView fields to compute; ``revokes`` says whether it may act on held tokens (then
    held positions are observed too, and text settles only when a window closes); ``keeps`` names the (B,) carry entries
    that outlive a window (all others begin anew); ``extra_steps`` are steps it may take after the last mask is gone;
    ``moves_end`` opens each window over the whole rest of the canvas, for ``Decision.end`` to shorten; ``grows`` is the
    most masks one decision may insert (a step that inserts need not commit).
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    revokes: ClassVar[bool] = False
    signals: ClassVar[frozenset[str]] = frozenset()
    keeps: ClassVar[frozenset[str]] = frozenset()
    extra_steps: ClassVar[int] = 0
    moves_end: ClassVar[bool] = False
    grows: ClassVar[int] = 0

    def __post_init__(self) -> None:
        check(self)

    def begin(self, view: StepView) -> Carry:
        """The memory before the first step of a window."""
        return {}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        raise NotImplementedError


def commits(chosen: Tensor) -> Tensor:
    """Actions (B, W) that commit the chosen positions and keep the rest."""
    return chosen.to(torch.int8)


def actions(commit: Tensor, revoke: Tensor | None = None, revise: Tensor | None = None) -> Tensor:
    """Actions (B, W) from disjoint choices."""
    action = commit.to(torch.int8)
    if revoke is not None:
        action = torch.where(revoke, int(Action.REVOKE), action)
    if revise is not None:
        action = torch.where(revise, int(Action.REVISE), action)
    return action.to(torch.int8)


def best_of(score: Tensor, among: Tensor) -> Tensor:
    """One-hot (B, W) bool of the highest score among the given positions; ties to the lower position; empty if none."""
    ranked = score.masked_fill(~among, -torch.inf)
    top = ranked.max(dim=1, keepdim=True).values
    first = (ranked == top) & among
    return first & (first.cumsum(dim=1) == 1)


def rank_of(score: Tensor, among: Tensor) -> Tensor:
    """Rank (B, W) int64 by descending score among the given positions, ties to the lower position; W elsewhere."""
    order = score.masked_fill(~among, -torch.inf).argsort(dim=1, descending=True, stable=True)
    index = torch.arange(score.shape[1], device=score.device).expand_as(order)
    rank = torch.empty_like(order).scatter_(1, order, index)
    return rank.masked_fill(~among, score.shape[1])


def top_of(score: Tensor, among: Tensor, count: Tensor) -> Tensor:
    """The ``count`` (B,) highest scores among the given positions, as (B, W) bool; ties to the lower position."""
    return among & (rank_of(score, among) < count[:, None])
