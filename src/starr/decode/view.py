"""What a strategy sees and decides: the contract between the loop and its strategies.

Letters: B rows, W window positions, V vocabulary. All tensors of one step share (B, W): rows may be at different steps
of different windows. Positions beyond a row's own width are padding and count as frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import torch
from torch import Tensor

from starr.decode.trace_format import Action as Action

DRAFT = "draft"  # a guest's signal, (B, W) int64: the first draft that holds the position, 0 for none
DRAFT_TOKEN = "draft.token"  # (B, W) int64: with what

Carry = Mapping[str, Tensor]
"""A strategy's memory. Tensors of shape (B,) belong to the row, (B, W, ...) to the window's positions."""


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
    sure: Tensor | None = None  # (B, W) float32: confidence that does not saturate, see ``confidence.unsaturated``
    entropy: Tensor | None = None  # (B, W) float32, nats; as all below, only where its name is among the signals
    margin: Tensor | None = None  # (B, W) float32: best minus second probability
    gap: Tensor | None = None  # (B, W) float32: best minus second logit
    distribution: Tensor | None = None  # (B, W, V) float32 logits, the mask id at -inf, zeros where not observed
    noise: Tensor | None = None  # (B, W) float32: uniform in (0, 1), from seed, step and position
    extras: Mapping[str, Tensor] = field(default_factory=dict)  # what guests of the loop tell: (B, W) by signal name

    @property
    def inside(self) -> Tensor:
        """(B, W) bool: the row's own positions, padding excluded."""
        return torch.arange(self.masked.shape[1], device=self.masked.device) < self.width[:, None]

    @property
    def held(self) -> Tensor:
        """(B, W) bool: committed and still revocable."""
        return ~(self.masked | self.frozen)

    @property
    def sureness(self) -> Tensor:
        """(B, W) float32: what to rank positions by, in the order of confidence and finer near 1."""
        return self.confidence if self.sure is None else self.sure


@dataclass(frozen=True, slots=True)
class Decision:
    """A strategy's decision on every position; ``enforce`` says which part of it is carried out."""

    action: Tensor  # (B, W) int8, values of Action
    threshold: Tensor | None = None  # (B, W) float32: what confidence was compared with
    label: Tensor | None = None  # (B, W) int8, values of Label
    doubt: Tensor | None = None  # (B, W) float32: which revocations matter most; threshold - confidence if None
    order: Tensor | None = None  # (B, W) float: which mask comes first if one must be committed; sureness if None
    tokens: Tensor | None = None  # (B, W) int64: what to write on COMMIT and REVISE; the proposal if None
    end: Tensor | None = None  # (B,) int64: the window now ends this many positions after its start
    extras: Mapping[str, Tensor] = field(default_factory=dict)  # what it asks of guests of the loop, by name


def draft_notes(number: int) -> tuple[str, str]:
    """The names of what draft ``number`` (from 1) is predicted: proposals (B, W) int64, and their sureness, float32."""
    return f"draft.{number}.proposal", f"draft.{number}.sureness"


def signal_of(note: str) -> str:
    """The signal that carries a guest's note: ``draft`` for ``draft`` and for ``draft.token``."""
    return note.partition(".")[0]


def commits(chosen: Tensor) -> Tensor:
    """Actions (B, W) int8 that commit the chosen positions and keep the rest."""
    return chosen.to(torch.int8)


def actions(commit: Tensor, revoke: Tensor | None = None, revise: Tensor | None = None) -> Tensor:
    """Actions (B, W) int8 from disjoint choices."""
    action = commit.to(torch.int8)
    if revoke is not None:
        action = torch.where(revoke, int(Action.REVOKE), action)
    if revise is not None:
        action = torch.where(revise, int(Action.REVISE), action)
    return action.to(torch.int8)
