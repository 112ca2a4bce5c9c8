"""Fresh proposals into the canvas's memory, and the window of each row as a StepView.

A position that was not queried keeps its last proposal and confidence. Letters: B rows, C columns, W window positions,
O observed positions (padded), V vocabulary.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from starr.decode import noise
from starr.decode.canvas import ALLOWED_SET, Canvas
from starr.decode.confidence import unsaturated
from starr.decode.forward import ForwardCall
from starr.decode.places import Places
from starr.decode.propose import Proposals
from starr.decode.query import QueryPlan
from starr.decode.result import LIKELY, StepTensors
from starr.decode.view import Decision, StepView, signal_of
from starr.errors import WorkError

STRATEGY_STREAM = 1
NEVER = -9999.0  # the log probability of what cannot be, as OpenAI writes it


def remember(canvas: Canvas, plan: QueryPlan, where: Places, found: Proposals) -> Canvas:
    """Write proposals (N = B * O rows) into the memory, and which positions the buffers hold now."""
    shape = where.index.shape
    masked = canvas.masked.gather(1, where.index)
    confidence = torch.where(masked, found.confidence.view(shape), found.own.view(shape))
    sure = confidence if found.odds is None else unsaturated(confidence, found.odds.view(shape))

    def updated(last: Tensor, new: Tensor | None) -> Tensor:
        return last if new is None else last.scatter(1, where.index, new.view(shape))

    return replace(
        canvas,
        proposal=updated(canvas.proposal, found.token),
        confidence=updated(canvas.confidence, confidence),
        best=updated(canvas.best, found.best),
        entropy=updated(canvas.entropy, found.entropy),
        sure=updated(canvas.sure, sure),
        margin=updated(canvas.margin, found.margin),
        gap=updated(canvas.gap, found.gap),
        seen=canvas.seen.scatter(1, where.index, True),
        buffered=canvas.buffered | plan.query,
    )


def check_numbers(confidence: Tensor, observed: Tensor) -> bool:
    """Raise where an observed confidence (B, C) is not a number; asked once, because it waits for the device."""
    if bool((confidence.isnan() & observed).any()):
        hint = "Are the weights damaged, or too large for float16? Try --dtype float32."
        raise WorkError("The model's first forward gave values that are not numbers (NaN).", hint=hint)
    return True


def observe(canvas: Canvas, index: Tensor, signals: frozenset[str], distribution: Tensor | None) -> StepView:
    """The window (B, W) of every row at columns ``index``; optional signals only where a strategy asked for them."""
    width = canvas.window_end - canvas.window_start

    def at(name: str) -> Tensor:
        return getattr(canvas, name).gather(1, index)  # type: ignore[no-any-return]

    def asked(name: str) -> Tensor | None:
        return at(name) if name in signals else None

    draw = None
    if "noise" in signals:
        position = index - canvas.start[:, None]
        draw = noise.uniform(noise.keys(canvas.seed[:, None], canvas.total[:, None], position, STRATEGY_STREAM))
    return StepView(
        tokens=at("tokens"),
        masked=at("masked"),
        frozen=at("frozen"),
        proposal=at("proposal"),
        confidence=at("confidence"),
        best=at("best"),
        step=canvas.step,
        width=width,
        windows=canvas.windows,
        block=canvas.block,
        sure=at("sure"),
        entropy=asked("entropy"),
        margin=asked("margin"),
        gap=asked("gap"),
        distribution=distribution,
        noise=draw,
        extras={name: note.gather(1, index) for name, note in canvas.notes.items() if signal_of(name) in signals},
    )


def window_logits(canvas: Canvas, index: Tensor, where: Places, found: Proposals) -> Tensor | None:
    """(B, W, V) for strategies that want the distribution; zeros where nothing was observed."""
    if found.logits is None:
        return None
    rows, width = index.shape
    values = found.logits.view(rows, -1, found.logits.shape[1])
    inside = where.real & canvas.in_window.gather(1, where.index)
    place = torch.where(inside, where.index - canvas.window_start[:, None], width)
    blank = values.new_zeros(rows, width + 1, values.shape[2])
    return blank.scatter_(1, place[..., None].expand_as(values), values)[:, :width]


def likeliest(distribution: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` likeliest tokens (B, W, count) of logits (B, W, V), and their log probabilities."""
    found = distribution.topk(min(count, distribution.shape[2]), dim=2)
    return found.indices, (found.values - distribution.logsumexp(dim=2, keepdim=True)).clamp(min=NEVER)


def kept_tensors(
    view: StepView, decision: Decision, action: Tensor, call: ForwardCall, candidates: int = 0
) -> StepTensors:
    """What is kept of the step, with this many ``candidates``; it crosses to the host when someone reads it."""
    columns = {
        "tokens": view.tokens,
        "masked": view.masked,
        "proposal": view.proposal,
        "best": view.best,
        "confidence": view.confidence,
        "queried": call.plan.observed.gather(1, call.window).int(),
        "decided": decision.action,
        "action": action,
    }
    optional = {"threshold": decision.threshold, "label": decision.label}
    columns |= {name: value for name, value in optional.items() if value is not None}
    if candidates and view.distribution is not None:
        columns |= zip(LIKELY, likeliest(view.distribution, candidates), strict=True)
    if ALLOWED_SET in call.canvas.notes:
        columns["allowed"] = call.canvas.notes[ALLOWED_SET].gather(1, call.window)
    return StepTensors(columns, view.width, call.canvas.window_start - call.canvas.start)
