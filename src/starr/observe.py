"""Fresh proposals into the canvas's memory, and the window of each row as a StepView.

A position that was not queried keeps its last proposal and confidence. Letters: B rows, C columns, W window positions,
O observed positions (padded), V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from starr import noise
from starr.canvas import Canvas
from starr.propose import Proposals
from starr.strategy.base import StepView

STRATEGY_STREAM = 1


@dataclass(frozen=True, slots=True)
class Places:
    """Chosen columns of each row, packed to the left and padded with the spare column."""

    index: Tensor  # (B, O) int64
    count: Tensor  # (B,) int64

    @property
    def real(self) -> Tensor:
        """(B, O) bool: not padding."""
        return torch.arange(self.index.shape[1], device=self.index.device) < self.count[:, None]


def places(chosen: Tensor, most: int) -> Places:
    """The True columns of (B, C), at most ``most`` a row, in order."""
    columns = chosen.shape[1]
    rank = torch.where(chosen, chosen.cumsum(dim=1) - 1, most)
    source = torch.arange(columns, device=chosen.device).expand_as(chosen)
    packed = torch.full((chosen.shape[0], most + 1), columns - 1, device=chosen.device)
    return Places(packed.scatter_(1, rank, source)[:, :most], chosen.sum(dim=1))


def window_index(canvas: Canvas, width: int) -> Tensor:
    """(B, W) int64: columns of each row's window, the spare column beyond its width."""
    offset = torch.arange(width, device=canvas.tokens.device)[None]
    own = canvas.window_end - canvas.window_start
    return torch.where(offset < own[:, None], canvas.window_start[:, None] + offset, canvas.columns - 1)


def postpone(found: Proposals, late: Tensor, vocab_size: int) -> Proposals:
    """Proposals in ``late`` (N,) bool made as unsure as can be, whatever a strategy goes by, so that they come last.

    Confidence and margin become 0, entropy ln V; the distribution stays as it is.
    """
    return replace(
        found,
        confidence=found.confidence.masked_fill(late, 0.0),
        margin=None if found.margin is None else found.margin.masked_fill(late, 0.0),
        entropy=None if found.entropy is None else found.entropy.masked_fill(late, math.log(vocab_size)),
    )


def remember(canvas: Canvas, where: Places, found: Proposals) -> Canvas:
    """Write proposals (N = B * O rows) into the memory."""
    shape = where.index.shape
    masked = canvas.masked.gather(1, where.index)
    confidence = torch.where(masked, found.confidence.view(shape), found.own.view(shape))
    updates = {
        "proposal": canvas.proposal.scatter(1, where.index, found.token.view(shape)),
        "confidence": canvas.confidence.scatter(1, where.index, confidence),
        "best": canvas.best.scatter(1, where.index, found.best.view(shape)),
        "seen": canvas.seen.scatter(1, where.index, True),
    }
    for name in ("entropy", "margin"):
        value = getattr(found, name)
        if value is not None:
            updates[name] = getattr(canvas, name).scatter(1, where.index, value.view(shape))
    return replace(canvas, **updates)


def observe(canvas: Canvas, index: Tensor, signals: frozenset[str], distribution: Tensor | None) -> StepView:
    """The window (B, W) of every row at columns ``index``; optional signals only where some strategy asked."""
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
        entropy=asked("entropy"),
        margin=asked("margin"),
        shadow=asked("shadow"),
        distribution=distribution,
        noise=draw,
    )


def window_logits(canvas: Canvas, index: Tensor, where: Places, found: Proposals) -> Tensor | None:
    """(B, W, V) for strategies that want the distribution; zeros where nothing was observed."""
    if found.logits is None:
        return None
    rows, width = index.shape
    values = found.logits.view(rows, -1, found.logits.shape[1])
    place = torch.where(where.real, where.index - canvas.window_start[:, None], width)
    blank = values.new_zeros(rows, width + 1, values.shape[2])
    return blank.scatter_(1, place[..., None].expand_as(values), values)[:, :width]
