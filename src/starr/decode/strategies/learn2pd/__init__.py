"""A small filter over the confidences of a block says what is already final; the canvas ends at a predicted end.

Learn2PD, arXiv:2509.25188, as released. Blocks from left to right, as long as the filter's input. In each step commit
the block's masks with P > tau, and always the most confident one; ties go to the lower position. End-of-text
prediction: if a commit with P > tau is an end-of-text, cut the canvas after the first such; else, if an end-of-text is
proposed at any mask, whatever the block, cut it after the most confident one. What is cut off is never computed again.

Two things differ. The filter sees 1 at positions that are no masks, where the release reads what the model would say
there. The release holds the filter's weights and not its class; ours has one hidden layer, as wide as the block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from starr.decode.ranking import best_of, with_best
from starr.decode.strategies.base import KnownModel, Strategy
from starr.decode.strategies.fitted import bind_fitted
from starr.decode.strategies.ids import is_one_of
from starr.decode.strategies.learn2pd.filter import BlockFilter, find_filter
from starr.decode.strategies.sweep import SURE, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.errors import InputError
from starr.named import option
from starr.plugins import register

FOREIGN = "Fit it again with starr calibrate --kind learn2pd, or allow it: learn2pd:foreign=true."


@register
@dataclass(frozen=True, kw_only=True)
class Learn2PD(Strategy):
    """Commit where a filter over the block's confidences says P > tau; cut the canvas at a predicted end of text."""

    name: ClassVar[str] = "learn2pd"
    paper: ClassVar[str] = "Learn2PD, arXiv:2509.25188"
    sweep: ClassVar[Sweep] = Sweep(SURE, "tau", (0.98, 0.96, 0.9, 0.8))
    scope: ClassVar[str] = "ahead"
    files: ClassVar[frozenset[str]] = frozenset({"filter"})
    filter: str = option("auto", "file of `starr calibrate --kind learn2pd`; auto is the one that ships for the model")
    tau: float = option(0.96, "commit where P is above this", low=0.0, high=2.0)
    cut: bool = option(True, "end-of-text prediction: cut the canvas after it")
    foreign: bool = option(False, "allow a filter that was fitted on another model")
    fitted: BlockFilter | None = field(default=None, repr=False, compare=False)
    ends: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def bind(self, model: KnownModel) -> Self:
        """A copy with its filter and the model's end-of-text ids."""
        return bind_fitted(self, model, self.fitted or find_filter(self.filter, model), "filter", FOREIGN)

    def needs(self) -> Mapping[str, float]:
        return {"shortening": self.cut}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        if self.fitted is None:
            raise InputError("learn2pd needs a model.", hint="Call bind(model) first.", param="strategy")
        open_, place = open_block(view.masked, self.fitted.block)
        chance = self.fitted.probability(block_confidence(view, place, open_, self.fitted.block))
        accepted = open_ & (chance.gather(1, place.clamp(0, self.fitted.block - 1)) > self.tau)
        chosen = with_best(accepted, view.sureness, open_)
        extras = {"cut": cut_behind(view, accepted, self.ends)} if self.cut else {}
        return Decision(commits(chosen), extras=extras), carry


def open_block(masked: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The masks (B, W) of the first block that has any, and every position's place (B, W) from that block's start."""
    first = masked.int().argmax(dim=1)
    start = torch.div(first, size, rounding_mode="floor") * size
    place = torch.arange(masked.shape[1], device=masked.device) - start[:, None]
    return masked & (place >= 0) & (place < size), place


def block_confidence(view: StepView, place: Tensor, open_: Tensor, size: int) -> Tensor:
    """(B, N) float32: the confidences of the open block's masks, 1 elsewhere."""
    found = view.confidence.new_ones(len(place), size + 1)
    at = torch.where(open_, place, size)
    return found.scatter(1, at, torch.where(open_, view.confidence, 1.0))[:, :size]


def cut_behind(view: StepView, accepted: Tensor, ends: tuple[int, ...]) -> Tensor:
    """(B,) int64: how many positions of the window are left; -1 cuts nothing."""
    ending = view.masked & is_one_of(view.proposal, ends)
    sure = accepted & ending
    first = sure & (sure.cumsum(dim=1) == 1)
    chosen = torch.where(sure.any(dim=1, keepdim=True), first, best_of(view.sureness, ending))
    place = torch.arange(1, view.masked.shape[1] + 1, device=ending.device)
    left = (chosen * place).sum(dim=1)
    return torch.where(left > 0, left, -1)
