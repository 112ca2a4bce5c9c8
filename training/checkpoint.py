"""A training run's state, kept in one safetensors file: weights, their average, the optimizers; counts as metadata."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from starr.model.network.shape import Shape
from starr.model.network.transformer import Transformer

FILE = "last.safetensors"


@dataclass
class Run:
    """Everything that changes while training and is saved in a checkpoint."""

    model: Transformer
    ema: Transformer
    optimizers: list[torch.optim.Optimizer]
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def save(self, path: Path) -> None:
        """All or nothing: an interrupted write leaves the earlier file."""
        parts = {"model": self.model.state_dict(), "ema": self.ema.state_dict()}
        parts |= {f"optimizer{place}": flat(optimizer) for place, optimizer in enumerate(self.optimizers)}
        tensors = {f"{part}/{name}": value for part, values in parts.items() for name, value in values.items()}
        counts = {"step": self.step, "tokens": self.tokens, "seconds": self.seconds}
        metadata = {"counts": json.dumps(counts), "shape": json.dumps(asdict(self.model.shape))}
        save_file(tensors, path.with_suffix(".part"), metadata)
        os.replace(path.with_suffix(".part"), path)

    def restore(self, path: Path) -> None:
        parts, metadata = read(path)
        self.model.load_state_dict(parts["model"])
        self.ema.load_state_dict(parts["ema"])
        for place, optimizer in enumerate(self.optimizers):
            fill(optimizer, parts[f"optimizer{place}"])
        for name, count in json.loads(metadata["counts"]).items():
            setattr(self, name, count)


def flat(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """``index/name`` -> tensor, for each parameter's index; both optimizers keep nothing but tensors."""
    states = optimizer.state_dict()["state"]
    return {f"{index}/{name}": value for index, state in states.items() for name, value in state.items()}


def fill(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """The reverse of ``flat``; rates and other options stay those of ``optimizer``."""
    states: dict[int, dict[str, Tensor]] = defaultdict(dict)
    for key, value in tensors.items():
        index, name = key.split("/")
        states[int(index)][name] = value
    optimizer.load_state_dict(optimizer.state_dict() | {"state": dict(states)})


def read(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, str]]:
    """Tensors by part and name, and the file's metadata."""
    parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
    with safe_open(path, "pt") as file:
        for key in file.keys():  # noqa: SIM118 - not a dict
            part, name = key.split("/", 1)
            parts[part][name] = file.get_tensor(key)
        return parts, file.metadata()


def averaged(path: Path) -> Transformer:
    """The averaged weights of a checkpoint, rounded to bfloat16 as they are shipped, in float32."""
    parts, metadata = read(path)
    net = Transformer(Shape(**json.loads(metadata["shape"])))
    net.load_state_dict({name: tensor.bfloat16().float() for name, tensor in parts["ema"].items()})
    return net.eval()
