"""Grow the canvas until the end of the text fits on it.

DAEDAL, arXiv:2508.00819. End confidence is the sum, over the last ``reach`` positions that hold or propose an
end-of-text, of its probability (1 where held), divided by ``reach``.

- Growing: while end confidence < start_end and the canvas is shorter than ``most``, append ``expand`` masks. Then
  append ``tail`` end-of-text tokens, which the first forward of the decoding sees. Without room for them the step
  decodes at once.
- Decoding, in blocks from the left: commit c > tau in the first block with masks, and always its most confident
  position; and if end confidence < keep_end, put ``expand`` masks in place of the least confident mask of the block
  with c < expand_below that is not committed in this step.

A growing step commits nothing. Ties go to the lower position. There is no room beyond ``most`` and the model's context.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from starr.decode.ranking import best_of, with_best
from starr.decode.strategies.base import KnownModel, Strategy
from starr.decode.strategies.blocks import in_first_block
from starr.decode.strategies.ids import check_ids, ids_text, is_one_of, parse_ids
from starr.decode.strategies.sweep import NEAR, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Daedal(Strategy):
    """A fixed threshold in blocks on a canvas that grows while the end of the text is not in sight."""

    name: ClassVar[str] = "daedal"
    paper: ClassVar[str] = "DAEDAL, arXiv:2508.00819"
    sweep: ClassVar[Sweep] = Sweep(NEAR)
    signals: ClassVar[frozenset[str]] = frozenset({"room"})
    scope: ClassVar[str] = "moving"
    tau: float = option(0.9, "commit where confidence is above this", low=0.0, high=2.0)
    block: int = option(32, "positions decoded together, if the request has no block length", low=1)
    expand: int = option(8, "masks appended, or put in place of one", low=2, high=4096)
    start_end: float = option(0.5, "grow first while end confidence is below this", low=0.0, high=2.0)
    keep_end: float = option(0.9, "grow while decoding where end confidence is below this", low=0.0, high=2.0)
    expand_below: float = option(0.1, "confidence below which a mask may be expanded", low=0.0, high=2.0)
    reach: int = option(32, "end-of-text positions that end confidence looks at", low=1)
    tail: int = option(16, "end-of-text tokens appended when growing is over", low=0, high=4096)
    most: int = option(2048, "canvas length at which growing stops", low=1)
    ends: str = option("auto", "end-of-text token ids separated by /; auto is the model's, none never grows")

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_ids(self.ends, "daedal: ends")

    def needs(self) -> Mapping[str, float]:
        return {"growth": max(self.expand, self.tail)}

    def bind(self, model: KnownModel) -> Self:
        """A copy whose ``auto`` end-of-text ids are the model's."""
        check_ids(self.ends, model, "daedal: ends")
        return dataclasses.replace(self, ends=ids_text(model.spec.eos_ids)) if self.ends == "auto" else self

    def begin(self, view: StepView) -> Carry:
        known = parse_ids(self.ends, "daedal: ends") != ()
        return {"growing": torch.full_like(view.width, known, dtype=torch.bool)}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        ids = parse_ids(self.ends, "daedal: ends")
        room = (self.most - view.width).clamp_min(0).minimum(view.extras["room"][:, 0])
        certain = self.end_confidence(view, ids)
        more = carry["growing"] & (certain < self.start_end) & (room > 0)
        tail = carry["growing"] & ~more & (room > 0) & (self.tail > 0)
        decoding = ~(more | tail)

        block = self.first_block(view) & decoding[:, None]
        chosen = with_best(block & (view.confidence > self.tau), view.sureness, block)
        weak = block & ~chosen & (view.confidence < self.expand_below) & (certain < self.keep_end)[:, None]
        spot = best_of(-view.confidence, weak)

        grow = (self.expand * more + self.tail * tail + (self.expand - 1) * spot.any(dim=1)).minimum(room)
        extras = {
            "grow": grow,
            "grow_at": torch.where(decoding, spot.int().argmax(dim=1), view.width - 1),
            "grow_token": torch.where(tail, ids[0] if ids else -1, -1),
        }
        decision = Decision(commits(chosen), torch.full_like(view.confidence, self.tau), extras=extras)
        return decision, {"growing": more}

    def end_confidence(self, view: StepView, ids: tuple[int, ...]) -> Tensor:
        """(B,) float32: the summed certainty of the last end-of-texts on the canvas, as a share of ``reach``."""
        held = view.held & is_one_of(view.tokens, ids)
        found = held | (view.masked & is_one_of(view.proposal, ids))
        from_right = found.flip(1).cumsum(dim=1).flip(1)
        last = found & (from_right <= self.reach)
        return (torch.where(held, 1.0, view.best) * last).sum(dim=1) / self.reach

    def first_block(self, view: StepView) -> Tensor:
        """(B, W) bool: the masks of the first block that has one."""
        return in_first_block(view.masked, torch.where(view.windows > 1, view.block, self.block))
