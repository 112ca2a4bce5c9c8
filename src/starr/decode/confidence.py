"""Pure scores over confidences: how far one stands from its own past and from its neighbours, and their grid.

Only separate multiplications and additions of whole tensors are used, each rounded once, so that a row gives the same
bits alone and in any batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

GRID = 2.0**16
LOGIT_GRID = 2.0**10
LEAST = 1e-30  # keeps ln(rest) finite: log-odds end at 69
SURE = 1.0 - 2.0**-6


def on_grid(value: Tensor) -> Tensor:
    """Rounded to 2^-16: float noise of different batch shapes cannot break ties."""
    return (value * GRID).round() / GRID


def on_small_grid(value: Tensor) -> Tensor:
    """Rounded to 2^-16, and what is below 2^-5 to ten binary digits after its first: small values keep their order."""
    bits = (value.view(torch.int32) + (1 << 12)) & -(1 << 13)
    return torch.where(value < 2.0**-5, bits.view(torch.float32), on_grid(value))


def on_logit_grid(value: Tensor) -> Tensor:
    """Rounded to 2^-10, for differences of logits: their float noise is larger, and they do not saturate."""
    return (value * LOGIT_GRID).round() / LOGIT_GRID


def log_odds(rest: Tensor) -> Tensor:
    """ln(p / (1 - p)) of the most likely token; ``rest`` is the sum of exp(logit - top) over all other tokens."""
    return on_logit_grid(-rest.clamp(min=LEAST).log())


def unsaturated(confidence: Tensor, odds: Tensor) -> Tensor:
    """Confidence below ``SURE``, and 1 + log-odds of the most likely token from there on.

    Near 1 the grid of confidences is too coarse: above 1 - 2^-17 all are equal. Log-odds do not saturate, and from
    ``SURE`` on their grid is the finer one.
    """
    return torch.where(confidence < SURE, confidence, 1.0 + odds)


def resolved(confidence: Tensor, sure: Tensor) -> Tensor:
    """Float64 confidence, told from ``sure`` (``unsaturated``) where that says more, on a grid of 2^-40.

    For sums and differences of confidences near 1. Sums of 2^12 of them are exact.
    """
    rest = (torch.sigmoid(1.0 - sure.double()) * 2.0**40).round() / 2.0**40
    return torch.where(sure > 1.0, 1.0 - rest, confidence.double())


def temporal_variance(confidence: Tensor, history: Tensor) -> Tensor:
    """Eq. 2: confidence (B, W) minus the mean of its last W_t values in history (B, W, W_t).

    The equation is a signed residual, not a variance. NaN where the history still holds NaN, that is before W_t steps.
    """
    return confidence - history.mean(dim=2)


def spatial_deviance(confidence: Tensor, field: Tensor, window: int, pads: tuple[float, float]) -> Tensor:
    """Eq. 3: confidence (B, W) minus the weighted mean of its neighbours in the field (B, W); signed."""
    return confidence - neighbour_mean(field, window, pads)


def neighbour_mean(field: Tensor, window: int, pads: tuple[float, float]) -> Tensor:
    """Weighted mean (B, W) of each position's neighbours at distance 1..window, the position itself left out.

    ``pads`` are the values beyond the left and the right edge.
    """
    rows, width = field.shape
    left, right = (field.new_full((rows, window), pad) for pad in pads)
    padded = torch.cat((left, field, right), dim=1)
    mean = torch.zeros_like(field)
    for distance, weight in enumerate(neighbour_weights(window), start=1):
        before = padded.narrow(1, window - distance, width)
        after = padded.narrow(1, window + distance, width)
        mean = mean + (before + after) * weight
    return mean


def neighbour_weights(window: int) -> tuple[float, ...]:
    """Weights of distance 1..window on either side: 2^-(d+1), the last one repeated, so that both sides sum to 1.

    The paper gives only window 3: (1/4, 1/8, 1/8); this is the rule that contains it for every window.
    """
    return tuple(2.0 ** -min(distance + 1, window) for distance in range(1, window + 1))


def part_of(value: Tensor, kind: str) -> Tensor:
    """The signed value as it is, its positive part, or its absolute value."""
    if kind == "positive":
        return value.clamp_min(0.0)
    return value.abs() if kind == "absolute" else value
