"""The spatial part of STaRR: a threshold from a position's neighbours (Eq. 3 and 6)."""

from __future__ import annotations

import torch
from torch import Tensor

from starr.decode.confidence import part_of, spatial_deviance
from starr.decode.view import StepView


def neighbour_field(view: StepView, confidence: Tensor, right_pad: float) -> Tensor:
    """What neighbours see (B, W): confidence, 1 on template tokens, the right pad beyond the row's own width."""
    known = confidence.masked_fill(view.frozen, 1.0)
    return torch.where(view.inside, known, right_pad)


def neighbour_threshold(deviance: Tensor, masked: Tensor) -> Tensor:
    """Eq. 6 (B, W): 1 - dev where masked, dev where held; at the edges the same with padded neighbours."""
    return torch.where(masked, 1.0 - deviance, deviance)


def spatial_threshold(
    view: StepView, confidence: Tensor, *, window: int, pads: tuple[float, float], kind: str
) -> Tensor:
    """T_neighbour (B, W) from the signed or absolute deviance (``kind``)."""
    field = neighbour_field(view, confidence, pads[1])
    deviance = part_of(spatial_deviance(confidence, field, window, pads), kind)
    return neighbour_threshold(deviance, view.masked)
