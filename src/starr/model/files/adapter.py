"""LoRA adapters: a folder with adapter_config.json and small matrices, merged into the weights of its base model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch

from starr.errors import LoadError
from starr.model.families.names import TensorNames
from starr.model.files.config import read_flag, read_json, read_real, read_whole
from starr.model.files.weights import open_weights, read_headers, weight_files
from starr.model.network.shape import Shape
from starr.model.network.transformer import Transformer

CONFIG = "adapter_config.json"
PREFIX = "base_model.model."
PLAIN: dict[str, tuple[object, ...]] = {  # of a LoRA that is a sum: anything else is refused
    "peft_type": ("LORA",),
    "bias": ("none", None),
    "use_dora": (False, None),
    "fan_in_fan_out": (False, None),
    "modules_to_save": (None, []),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
}


@dataclass(frozen=True, slots=True)
class Adapter:
    """Where an adapter is, what it is for, and how strong it is."""

    folder: Path
    base: str  # a folder or a hub id
    scale: float


def find_adapter(folder: Path) -> Adapter | None:
    """The adapter in a folder that holds no model of its own."""
    if not (folder / CONFIG).exists() or (folder / "config.json").exists():
        return None
    config = read_json(folder / CONFIG)
    for key, allowed in PLAIN.items():
        if config.get(key) not in allowed:
            raise LoadError(f"{CONFIG}: {key}={config.get(key)!r} is not supported, only a plain LoRA is merged.")
    base = config.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise LoadError(f"{CONFIG} names no base_model_name_or_path.", hint="Write the base model's folder or hub id.")
    rank = read_whole(config, "r")
    rooted = config.get("use_rslora") is not None and read_flag(config, "use_rslora")
    return Adapter(folder, base, read_real(config, "lora_alpha") / (math.sqrt(rank) if rooted else rank))


def merge(net: Transformer, adapter: Adapter, names: TensorNames, shape: Shape) -> None:
    """Add scale * B @ A to every matrix that the adapter has a pair for; a pair without a matrix is refused."""
    found = read_headers(weight_files(adapter.folder))
    places = {part.tensor: part for part in names.parts(shape)}
    firsts = [key for key in found if key.endswith(".lora_A.weight")]
    seconds = {key: key.replace(".lora_A.", ".lora_B.") for key in firsts}
    strange = sorted(set(found) - {*firsts, *seconds.values()} | (set(seconds.values()) - set(found)))
    if strange or not firsts:
        raise LoadError(f"The adapter's tensors must be pairs of lora_A and lora_B; {(strange or ['none'])[0]} is not.")
    for first, second in seconds.items():
        target = first.removeprefix(PREFIX).replace(".lora_A.weight", ".weight")
        part = places.get(target)
        if part is None or part.rows is not None or part.expert is not None:
            raise LoadError(f"The adapter changes {target}, which the base model does not have as one matrix.")
        weight = net.get_parameter(part.parameter)
        with open_weights(found[first].file) as shard:
            inner = shard.get_tensor(first).float()
        with open_weights(found[second].file) as shard:
            outer = shard.get_tensor(second).float()
        if (outer.shape[0], inner.shape[1]) != tuple(weight.shape) or outer.shape[1] != inner.shape[0]:
            raise LoadError(f"The adapter's matrices for {target} do not fit its shape {tuple(weight.shape)}.")
        change = (adapter.scale * outer @ inner).to(weight.device)
        with torch.no_grad():
            weight.copy_((weight.float() + change).to(weight.dtype))
