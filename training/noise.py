"""Which tokens of a training row are masked: how many as in LLaDA, which ones in one of three orders.

Under random masks the result of a sum mostly stands somewhere else, to be copied, and some token near the end of the
answer tells its length. While decoding neither is there yet, so some rows lose their digits from the right, and some
lose everything around the end of the answer first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

DIGITS, TAIL = 0.3, 0.35  # shares of rows; the rest is masked at random


@dataclass(frozen=True)
class Batch:
    """Rows of one length L; ``least`` masks are always set in a row."""

    tokens: Tensor  # (B, L) int64
    maskable: Tensor  # (B, L) bool
    digits: Tensor  # (B, L) bool: digits of an answer
    fill: Tensor  # (B, L) bool: end-of-text behind an answer
    least: Tensor  # (B,) int64


def mask_tokens(batch: Batch, mask_id: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """LLaDA's noise with stratified shares: n ~ U{least..G} masks per row, one stratum per row of the batch.

    Returns the noised tokens (B, L), which are masked (B, L) bool, and the weights (B, L) of their losses, 1 / n.
    """
    rows = batch.tokens.shape[0]
    strata = (torch.randperm(rows, generator=generator) + torch.rand(rows, generator=generator)) / rows
    span = batch.maskable.sum(1) - batch.least
    count = batch.least + (strata * (span + 1)).long().clamp(max=span)
    score = torch.rand(batch.tokens.shape, generator=generator)  # the lowest are masked
    order = torch.rand(rows, 1, generator=generator)
    score = torch.where(batch.digits & (order < DIGITS), 0.5 * falling(batch.digits), score)
    draw = torch.rand(rows, 1, generator=generator)
    score = torch.where(order > 1 - TAIL, from_the_end(batch, draw / (1 - draw)), score)
    masked = score.masked_fill(~batch.maskable, torch.inf).argsort(1).argsort(1) < count[:, None]
    return batch.tokens.masked_fill(masked, mask_id), masked, masked / count[:, None]


def from_the_end(batch: Batch, pace: Tensor) -> Tensor:
    """Scores (B, L) that rise from the answer's end to both sides, to the right ``pace`` (B, 1) times as steeply.

    With a pace above 1 the whole answer is masked while end-of-text still stands far behind it, as when decoding by
    confidence finds the length first.
    """
    fill = batch.fill.cumsum(1) / batch.fill.sum(1, keepdim=True).clamp(min=1)
    return torch.where(batch.fill, pace * fill, falling(batch.maskable & ~batch.fill))


def falling(part: Tensor) -> Tensor:
    """The share of ``part`` (B, L) bool that stands here or to the right: 1 at its first position, falling."""
    after = part.flip(1).cumsum(1).flip(1)
    return after / after[:, :1].clamp(min=1)
