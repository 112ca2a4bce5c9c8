"""Whether weights are numbers: a sample of every tensor, so that a damaged file is named when it is loaded."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from starr.errors import LoadError

SAMPLED = 4096  # values of a tensor, from its first to its last


def strided(weight: Tensor, count: int) -> Tensor:
    """Up to ``count`` values of a tensor, evenly spread from its first to its last."""
    flat = weight.detach().flatten()
    places = torch.linspace(0, len(flat) - 1, min(count, len(flat)), dtype=torch.float64).round().long()
    return flat[places.to(flat.device)]


def check_finite(net: nn.Module) -> None:
    """Raise LoadError with the name of a weight whose sampled values are not all finite."""
    for name, weight in net.named_parameters():
        if not bool(strided(weight, SAMPLED).isfinite().all()):
            hint = "Copy or download it again, or load it as float32."
            raise LoadError(f"Weight {name} holds values that are not finite numbers.", hint=hint)
