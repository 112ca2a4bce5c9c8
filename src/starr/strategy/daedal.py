"""Grow the canvas until the end of the text fits on it.

DAEDAL, arXiv:2508.00819. End confidence is the sum, over the last ``reach`` positions that hold or propose an
end-of-text, of its probability (1 where held), divided by ``reach``.

- Growing: while end confidence < start_end and the canvas is shorter than ``most``, append ``expand`` masks. Then
  append ``tail`` end-of-text tokens.
- Decoding, in blocks from the left: commit c > tau in the first block with masks, and always its most confident
  position; and if end confidence < keep_end, put ``expand`` masks in place of the least confident mask of the block
  with c < expand_below that is not committed in this step.

A growing step commits nothing. Ties go to the lower position. The engine keeps the canvas within the model's context;
a row that was refused masks does not ask again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from starr.strategy.base import Carry, Decision, StepView, Strategy, best_of, commits
from starr.strategy.ids import ids_text, is_one_of, parse_ids
from starr.strategy.members import register
from starr.strategy.registry import option

GROWING, TAIL, DECODING = 0, 1, 2


@register
@dataclass(frozen=True, kw_only=True)
class Daedal(Strategy):
    """A fixed threshold in blocks on a canvas that grows while the end of the text is not in sight."""

    name: ClassVar[str] = "daedal"
    paper: ClassVar[str] = "DAEDAL, arXiv:2508.00819"
    moves_end: ClassVar[bool] = True
    tau: float = option(0.9, "commit where confidence is above this", low=0.0, high=2.0)
    block: int = option(32, "positions decoded together, if the request has no block length", low=1)
    expand: int = option(8, "masks appended, or put in place of one", low=2)
    start_end: float = option(0.5, "grow first while end confidence is below this", low=0.0, high=2.0)
    keep_end: float = option(0.9, "grow while decoding where end confidence is below this", low=0.0, high=2.0)
    expand_below: float = option(0.1, "confidence below which a mask may be expanded", low=0.0, high=2.0)
    reach: int = option(32, "end-of-text positions that end confidence looks at", low=1)
    tail: int = option(16, "end-of-text tokens appended when growing is over", low=0)
    most: int = option(2048, "canvas length at which growing stops", low=1)
    ends: str = option("auto", "end-of-text token ids separated by /; auto is the model's, none never grows")

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_ids(self.ends, "daedal: ends")
        object.__setattr__(self, "grows", max(self.expand, self.tail))

    def bind(self, model: Any) -> Self:
        """A copy whose ``auto`` end-of-text ids are the model's."""
        return dataclasses.replace(self, ends=ids_text(model.spec.eos_ids)) if self.ends == "auto" else self

    def begin(self, view: StepView) -> Carry:
        known = parse_ids(self.ends, "daedal: ends") != ()
        return {
            "stage": torch.full_like(view.width, GROWING if known else DECODING),
            "width": view.width,
            "asked": torch.zeros_like(view.width),
            "full": torch.zeros_like(view.width, dtype=torch.bool),
        }

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        ids = parse_ids(self.ends, "daedal: ends")
        position = torch.arange(view.masked.shape[1], device=view.masked.device)
        stage = carry["stage"]
        full = carry["full"] | ((carry["asked"] > 0) & (view.width == carry["width"]))
        room = (self.most - view.width).clamp_min(0).masked_fill(full, 0)
        tail = view.masked & (stage == TAIL)[:, None] & (position >= carry["width"][:, None])
        certain = self.end_confidence(view, ids)
        growing = stage == GROWING
        starts = growing & (certain < self.start_end) & (room > 0)

        block = self.first_block(view, view.masked & ~tail, position) & ~growing[:, None]
        chosen = (block & (view.confidence > self.tau)) | best_of(view.confidence, block)
        weak = block & ~chosen & (view.confidence < self.expand_below) & (certain < self.keep_end)[:, None]
        spot = best_of(-view.confidence, weak)

        grow = self.expand * starts + self.tail * (growing & ~starts) + (self.expand - 1) * spot.any(dim=1)
        grow = grow.minimum(room)
        decision = Decision(
            commits(chosen | tail),
            torch.full_like(view.confidence, self.tau),
            tokens=view.proposal.masked_fill(tail, ids[0]) if ids else view.proposal,
            grow=grow,
            grow_at=torch.where(growing, view.width - 1, spot.int().argmax(dim=1)),
        )
        after = torch.where(starts, GROWING, torch.where(growing, TAIL, DECODING))
        return decision, {"stage": after, "width": view.width, "asked": grow, "full": full}

    def end_confidence(self, view: StepView, ids: tuple[int, ...]) -> Tensor:
        """(B,) float32: the summed certainty of the last end-of-texts on the canvas, as a share of ``reach``."""
        held = view.held & is_one_of(view.tokens, ids)
        found = held | (view.masked & is_one_of(view.proposal, ids))
        from_right = found.flip(1).cumsum(dim=1).flip(1)
        last = found & (from_right <= self.reach)
        return (torch.where(held, 1.0, view.best) * last).sum(dim=1) / self.reach

    def first_block(self, view: StepView, masked: Tensor, position: Tensor) -> Tensor:
        """(B, W) bool: the given masks that lie in the first block that has one."""
        length = torch.where(view.windows > 1, view.block, self.block)[:, None]
        first = masked.int().argmax(dim=1)[:, None]
        return masked & (position // length == first // length)
