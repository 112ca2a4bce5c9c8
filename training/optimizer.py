"""Muon for the matrices (momentum orthogonalised by Newton-Schulz), AdamW for the rest; and the weights' average.

Muon: Jordan et al. 2024; the scale 0.2 * sqrt(larger side) makes one rate fit both optimizers (Liu et al. 2025).
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 4


def orthogonalise(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """The nearest semi-orthogonal matrices, roughly: (N, rows, columns) in, the same out."""
    a, b, c = COEFFICIENTS
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = matrices.to(dtype) if wide else matrices.to(dtype).mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x if wide else x.mT).float()


class Muon(torch.optim.Optimizer):
    """Matrices of one shape are orthogonalised in one batch, in ``dtype``."""

    def __init__(
        self, params: list[Tensor], lr: float, dtype: torch.dtype, momentum: float = 0.95, weight_decay: float = 0.01
    ) -> None:
        self.dtype = dtype
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for param in group["params"]:
                shapes[param.shape].append(param)
            for params in shapes.values():
                self.step_shape(params, group["lr"], group["momentum"], group["weight_decay"])

    def step_shape(self, params: list[Tensor], lr: float, momentum: float, weight_decay: float) -> None:
        looks = []
        for param in params:
            state = self.state[param].setdefault("momentum", torch.zeros_like(param))
            state.lerp_(param.grad, 1 - momentum)
            looks.append(param.grad.lerp(state, momentum))
        scale = 0.2 * max(params[0].shape) ** 0.5
        for param, update in zip(params, orthogonalise(torch.stack(looks), self.dtype), strict=True):
            param.mul_(1 - lr * weight_decay).add_(update, alpha=-lr * scale)


def split_parameters(model: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """(matrices of the layers for Muon, everything else for AdamW)."""
    matrices = [p for name, p in model.named_parameters() if name.startswith("layers.") and p.dim() == 2]
    chosen = {id(p) for p in matrices}
    return matrices, [p for p in model.parameters() if id(p) not in chosen]


@torch.no_grad()
def average(ema: nn.Module, model: nn.Module, step: int, decay: float) -> None:
    """Exponential moving average of the weights, shorter at the start of a run."""
    decay = min(decay, (1 + step) / (10 + step))
    for old, new in zip(ema.parameters(), model.parameters(), strict=True):
        old.lerp_(new, 1 - decay)
