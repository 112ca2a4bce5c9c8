"""The temporal part of STaRR: a threshold from a position's own past (Eq. 2 and 5)."""

from __future__ import annotations

import torch
from torch import Tensor

from starr.decode.confidence import part_of, temporal_variance


def empty_history(confidence: Tensor, window: int) -> Tensor:
    """History (B, W, W_t) before the first step: NaN, so that its mean is known only after W_t steps."""
    return torch.full((*confidence.shape, window), torch.nan, device=confidence.device)


def remember(history: Tensor, confidence: Tensor) -> Tensor:
    """History (B, W, W_t) with this step's confidence (B, W) as the newest value and the oldest dropped."""
    return torch.cat((history[:, :, 1:], confidence[:, :, None]), dim=2)


def base_threshold(variance: Tensor, scale: float, warmup: float) -> Tensor:
    """Eq. 5 (B, W): m times the variance, and tau_fixed while a position has fewer than W_t past values.

    A larger m is stricter where confidence rises and looser where it falls. There is no floor and no ceiling.
    """
    return torch.where(variance.isnan(), warmup, variance * scale)


def temporal_threshold(confidence: Tensor, history: Tensor, *, scale: float, warmup: float, kind: str) -> Tensor:
    """T_base (B, W) from the signed, positive or absolute variance (``kind``)."""
    return base_threshold(part_of(temporal_variance(confidence, history), kind), scale, warmup)
