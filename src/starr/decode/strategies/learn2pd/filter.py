"""A block filter: one JSON file with the weights of a small network over the confidences of one block.

P = sigmoid(W2 relu(W1 c + b1) + b2): N confidences of a block in, the chance of each position that its proposal is
already the final token out. Positions that are no masks count as 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from starr.decode.strategies.base import KnownModel
from starr.decode.strategies.calibrated.rule import GRID
from starr.decode.strategies.fitted import find_fitted
from starr.errors import InputError

KIND = "learn2pd"
FORMAT = 1
WEIGHTS = ("w1", "b1", "w2", "b2")
HINT = "Fit one: starr calibrate TASK --kind learn2pd -o filter.json, then learn2pd:filter=filter.json."


@dataclass(frozen=True, slots=True, eq=False)
class BlockFilter:
    """Weights over blocks of N positions with H hidden units, and where they come from."""

    w1: Tensor  # (N, H)
    b1: Tensor  # (H,)
    w2: Tensor  # (H, N)
    b2: Tensor  # (N,)
    fitted_on: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)

    @property
    def block(self) -> int:
        return len(self.b2)

    def logits(self, confidence: Tensor) -> Tensor:
        """(B, N) of confidences (B, N)."""
        return torch.relu(confidence @ self.w1 + self.b1) @ self.w2 + self.b2

    def probability(self, confidence: Tensor) -> Tensor:
        """(B, N), rounded so that a row gets the same in any batch."""
        return (self.logits(confidence).sigmoid() * GRID).round() / GRID

    def to_dict(self) -> dict[str, Any]:
        """The file's content."""
        numbers = {name: getattr(self, name).tolist() for name in WEIGHTS}
        return {"kind": KIND, "format": FORMAT, "fitted_on": self.fitted_on, "scores": self.scores, **numbers}


def filter_from(body: Any, source: str) -> BlockFilter:
    """A filter from a file's content; anything else is one clear line."""
    try:
        if (body["kind"], body["format"]) != (KIND, FORMAT):
            raise ValueError("kind")
        numbers = {name: torch.tensor(body[name], dtype=torch.float32) for name in WEIGHTS}
        block, hidden = len(numbers["b2"]), len(numbers["b1"])
        shapes = {"w1": (block, hidden), "b1": (hidden,), "w2": (hidden, block), "b2": (block,)}
        if any(tuple(numbers[name].shape) != shape for name, shape in shapes.items()):
            raise ValueError("shape")
        if not all(tensor.isfinite().all() for tensor in numbers.values()):
            raise ValueError("numbers")
        return BlockFilter(**numbers, fitted_on=dict(body["fitted_on"]), scores=dict(body["scores"]))
    except (KeyError, TypeError, ValueError, RuntimeError):
        raise InputError(f"{source} is not a block filter.", hint=HINT, param="filter") from None


def find_filter(where: str, model: KnownModel) -> BlockFilter:
    """The filter of a file, or with ``auto`` the one that ships for the model."""
    return find_fitted(where, model, "filter", __package__, filter_from, HINT)
