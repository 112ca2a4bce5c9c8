"""End each block at a confident line end.

AdaBlock-dLLM, arXiv:2509.26432. In the first step of a window, among the next min(floor(share L), rest) positions
whose proposal is a delimiter, take the most confident one (ties to the lower position); if its confidence >=
delimiter_tau the block ends after it, otherwise after the default length: the request's block length, or ``block``
if it has none. L is the canvas length. Inside the block: Fast-dLLM's threshold, c >= tau and always the most
confident one. A delimiter_tau above 1 gives fixed blocks.

The window opens over the rest of the canvas; the block never ends before the first mask.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from starr.decode.ranking import best_of, with_best
from starr.decode.strategies.base import KnownModel, Strategy
from starr.decode.strategies.ids import check_ids, ids_text, is_one_of, parse_ids
from starr.decode.strategies.sweep import NEAR, Sweep
from starr.decode.view import Carry, Decision, StepView, commits
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class AdaBlock(Strategy):
    """Fast-dLLM's threshold in blocks that end at the most confident line end ahead."""

    name: ClassVar[str] = "adablock"
    paper: ClassVar[str] = "AdaBlock-dLLM, arXiv:2509.26432"
    sweep: ClassVar[Sweep] = Sweep(NEAR)
    keeps: ClassVar[frozenset[str]] = frozenset({"length"})
    scope: ClassVar[str] = "moving"
    tau: float = option(0.9, "commit where confidence is at least this", low=0.0, high=2.0)
    delimiter_tau: float = option(0.3, "confidence a delimiter needs to end the block", low=0.0)
    share: float = option(0.25, "how far ahead to look for it, as a share of the canvas", low=0.0, high=1.0)
    block: int = option(32, "block length without a delimiter, if the request has no block length", low=1)
    delimiters: str = option("auto", "token ids separated by /; auto is the model's line end, none has no delimiter")

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_ids(self.delimiters, "adablock: delimiters")

    def bind(self, model: KnownModel) -> Self:
        """A copy whose ``auto`` delimiters are the line end of the model's tokenizer (none if it has no such token)."""
        check_ids(self.delimiters, model, "adablock: delimiters")
        if self.delimiters != "auto":
            return self
        found = [token for token in model.tokenizer.encode("\n") if model.tokenizer.piece(token) == "\n"]
        return dataclasses.replace(self, delimiters=ids_text(found))

    def begin(self, view: StepView) -> Carry:
        return {"length": view.width}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        position = torch.arange(view.masked.shape[1], device=view.masked.device)
        end = torch.where(view.step == 0, self.block_end(view, position, carry["length"]), view.width)
        inside = view.masked & (position < end[:, None])
        chosen = with_best(inside & (view.confidence >= self.tau), view.sureness, inside)
        return Decision(commits(chosen), torch.full_like(view.confidence, self.tau), end=end), carry

    def block_end(self, view: StepView, position: Tensor, length: Tensor) -> Tensor:
        """Positions (B,) from the window's start to the end of the block that begins there."""
        ahead = (length.double() * self.share).floor()[:, None]
        ids = parse_ids(self.delimiters, "adablock: delimiters")
        found = view.masked & (position < ahead) & is_one_of(view.proposal, ids)
        found = best_of(view.sureness, found & (view.confidence >= self.delimiter_tau))
        fixed = torch.where(view.windows > 1, view.block, self.block)
        behind = (found * (position + 1)).sum(dim=1)
        end = torch.where(behind > 0, behind, fixed)
        first = view.masked.int().argmax(dim=1) + 1
        return end.maximum(first).minimum(view.width)
