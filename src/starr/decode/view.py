"""What a strategy sees and decides: the contract between the loop and its strategies.

Letters: B rows, W window positions, V vocabulary. All tensors of one step share (B, W): rows may be at different steps
of different windows. Positions beyond a row's own width are padding and count as frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode import noise
from starr.decode.confidence import unsaturated
from starr.decode.result import LIKELY, StepTensors
from starr.decode.trace import Action as Action
from starr.errors import WorkError

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas, Columns
    from starr.decode.enforce import Step
    from starr.decode.forward import ForwardCall
    from starr.decode.propose import Proposals

DRAFT = "draft"  # a guest's signal, (B, W) int64: the first draft that holds the position, 0 for none
DRAFT_TOKEN = "draft.token"  # (B, W) int64: with what

KEEP, COMMIT, REVOKE, REVISE = map(int, Action)  # torch.compile stops where a tensor is compared with an enum
STRATEGY_STREAM = 1
NEVER = -9999.0  # the log probability of what cannot be, as OpenAI writes it

Carry = Mapping[str, Tensor]
"""A strategy's memory. Tensors of shape (B,) belong to the row, (B, W, ...) to the window's positions."""


class Label(IntEnum):
    """Why a position was acted on, where it was not a plain threshold."""

    NONE = 0
    SLOW = 1
    FAST = 2


@dataclass(frozen=True, slots=True)
class StepView:
    """Everything a strategy may read in one step, and nothing that it may change.

    tokens: (B, W) int64, the mask id where masked.
    masked: (B, W) bool.
    frozen: (B, W) bool: template tokens inside the window, and padding beyond its width.
    proposal: (B, W) int64: the candidate token; never the mask id.
    confidence: (B, W) float32: probability of the proposal where masked, of the held token where held.
    best: (B, W) float32: probability of the most likely token.
    step: (B,) int64: steps already taken in this window.
    width: (B,) int64: positions of the row's window.
    windows: (B,) int64: windows (blocks) the row's canvas is split into.
    block: (B,) int64: the row's block length (its whole canvas without blocks).
    sure: (B, W) float32: confidence that does not saturate, see ``confidence.unsaturated``.
    entropy: (B, W) float32, nats; as all below, only where its name is among the signals.
    margin: (B, W) float32: best minus second probability.
    gap: (B, W) float32: best minus second logit.
    distribution: (B, W, V) float32 logits, the mask id at -inf, zeros where not observed.
    noise: (B, W) float32: uniform in (0, 1), from seed, step and position.
    extras: what guests of the loop tell: (B, W) by signal name.
    """

    tokens: Tensor
    masked: Tensor
    frozen: Tensor
    proposal: Tensor
    confidence: Tensor
    best: Tensor
    step: Tensor
    width: Tensor
    windows: Tensor
    block: Tensor
    sure: Tensor | None = None
    entropy: Tensor | None = None
    margin: Tensor | None = None
    gap: Tensor | None = None
    distribution: Tensor | None = None
    noise: Tensor | None = None
    extras: Mapping[str, Tensor] = field(default_factory=dict)

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
    """A strategy's decision on every position; ``enforce`` says which part of it is carried out.

    An action is an integer tensor: ``starr.commits`` and ``starr.actions`` make one of truth values. A float one is
    refused.

        action: (B, W) int8, values of Action.
        threshold: (B, W) float32: what confidence was compared with.
        label: (B, W) int8, values of Label.
        doubt: (B, W) float32: which revocations matter most; threshold - confidence if None.
        order: (B, W) float: which mask comes first if one must be committed; sureness if None.
        tokens: (B, W) int64: what to write on COMMIT and REVISE; the proposal if None.
        end: (B,) int64: the window now ends this many positions after its start.
        extras: what it asks of guests of the loop, by name.
    """

    action: Tensor
    threshold: Tensor | None = None
    label: Tensor | None = None
    doubt: Tensor | None = None
    order: Tensor | None = None
    tokens: Tensor | None = None
    end: Tensor | None = None
    extras: Mapping[str, Tensor] = field(default_factory=dict)


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
        action = torch.where(revoke, REVOKE, action)
    if revise is not None:
        action = torch.where(revise, REVISE, action)
    return action.to(torch.int8)


def remember(call: ForwardCall, found: Proposals) -> Canvas:
    """The canvas with the proposals (N = B * O rows) in its memory, and with what buffers hold and seals cover now."""
    canvas, where, blocks = call.canvas, call.observed, call.settings.blocks
    shape = where.index.shape
    masked = canvas.masked.gather(1, where.index)
    confidence = torch.where(masked, found.confidence.view(shape), found.own.view(shape))
    sure = confidence if found.odds is None else unsaturated(confidence, found.odds.view(shape))

    def updated(last: Tensor, new: Tensor | None) -> Tensor:
        return last if new is None else last.scatter(1, where.index, new.view(shape))

    last = canvas.last
    last = replace(
        last,
        proposal=updated(last.proposal, found.token),
        confidence=updated(last.confidence, confidence),
        best=updated(last.best, found.best),
        sure=updated(last.sure, sure),
        entropy=updated(last.entropy, found.entropy),
        margin=updated(last.margin, found.margin),
        gap=updated(last.gap, found.gap),
        seen=last.seen.scatter(1, where.index, True),
    )
    canvas = replace(canvas, last=last, buffered=canvas.buffered | call.plan.query)
    return canvas if blocks is None else blocks.seal_past(canvas)


def check_numbers(confidence: Tensor, observed: Tensor) -> bool:
    """Raise where an observed confidence (B, C) is not a number; asked once, because it waits for the device."""
    if bool((confidence.isnan() & observed).any()):
        hint = "Are the weights damaged, or too large for float16? Try --dtype float32."
        raise WorkError("The model's first forward gave values that are not numbers (NaN).", hint=hint)
    return True


def build_view(call: ForwardCall, canvas: Canvas, found: Proposals) -> StepView:
    """The window (B, W) of every row; optional signals only where a strategy asked for them."""
    index, signals = call.window, call.settings.signals
    width = canvas.window.end - canvas.window.start

    def at(name: str) -> Tensor:
        part = canvas if name in ("tokens", "masked", "frozen") else canvas.last
        return getattr(part, name).gather(1, index)  # type: ignore[no-any-return]

    def asked(name: str) -> Tensor | None:
        return at(name) if name in signals else None

    draw = None
    if "noise" in signals:
        position = index - canvas.rules.start[:, None]
        draw = noise.uniform(noise.keys(canvas.rules.seed[:, None], canvas.total[:, None], position, STRATEGY_STREAM))
    return StepView(
        tokens=at("tokens"),
        masked=at("masked"),
        frozen=at("frozen"),
        proposal=at("proposal"),
        confidence=at("confidence"),
        best=at("best"),
        step=canvas.window.step,
        width=width,
        windows=canvas.rules.windows,
        block=canvas.rules.block,
        sure=at("sure"),
        entropy=asked("entropy"),
        margin=asked("margin"),
        gap=asked("gap"),
        distribution=window_logits(canvas, index, call.observed, found),
        noise=draw,
        extras={name: note.gather(1, index) for name, note in canvas.notes.items() if signal_of(name) in signals},
    )


def window_logits(canvas: Canvas, index: Tensor, where: Columns, found: Proposals) -> Tensor | None:
    """(B, W, V) for strategies that want the distribution; zeros where nothing was observed."""
    if found.logits is None:
        return None
    rows, width = index.shape
    values = found.logits.view(rows, -1, found.logits.shape[1])
    inside = where.real & canvas.in_window.gather(1, where.index)
    place = torch.where(inside, where.index - canvas.window.start[:, None], width)
    blank = values.new_zeros(rows, width + 1, values.shape[2])
    return blank.scatter_(1, place[..., None].expand_as(values), values)[:, :width]


def likeliest(distribution: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` likeliest tokens (B, W, count) of logits (B, W, V), and their log probabilities."""
    found = distribution.topk(min(count, distribution.shape[2]), dim=2)
    return found.indices, (found.values - distribution.logsumexp(dim=2, keepdim=True)).clamp(min=NEVER)


def keep_tensors(step: Step, call: ForwardCall, candidates: int = 0) -> StepTensors:
    """What is kept of the step, with this many ``candidates``; it crosses to the host when someone reads it."""
    view, decision = step.view, step.decision
    columns = {
        "tokens": view.tokens,
        "masked": view.masked,
        "proposal": view.proposal,
        "best": view.best,
        "confidence": view.confidence,
        "queried": call.plan.observed.gather(1, call.window).int(),
        "decided": decision.action,
        "action": step.action,
    }
    optional = {"threshold": decision.threshold, "label": decision.label}
    columns |= {name: value for name, value in optional.items() if value is not None}
    if candidates and view.distribution is not None:
        columns |= zip(LIKELY, likeliest(view.distribution, candidates), strict=True)
    if "allowed_set" in step.canvas.notes:
        columns["allowed"] = step.canvas.notes["allowed_set"].gather(1, call.window)
    return StepTensors(columns, view.width, call.canvas.window.start - call.canvas.rules.start)
