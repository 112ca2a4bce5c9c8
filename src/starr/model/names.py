"""What the families share: tables of names turned into a specification's token ids and a checkpoint's tensor names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starr.model.config import Config, token, unique
from starr.model.layers import Shape
from starr.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Names:
    """One family's words. Tensor names are given without ``.weight``; ``layer`` has a place for the layer's number."""

    family: str
    shift: bool
    mask: str
    bos: str
    ends: tuple[str, ...]  # tokens besides eos and padding that end a text, where the tokenizer has them
    top: Mapping[str, str]
    layer: str
    in_layer: Mapping[str, str]


def make_spec(names: Names, name: str, shape: Shape, config: Config, added: Mapping[str, int]) -> ModelSpec:
    """``config`` says which tokens mask, end and pad; what it leaves out is found by name among the added tokens."""
    eos = token(config, "eos_token_id", added.get("<|endoftext|>"), shape)
    pad = token(config, "pad_token_id", eos, shape)
    return ModelSpec(
        name=name,
        family=names.family,
        shape=shape,
        mask_id=token(config, "mask_token_id", added.get(names.mask), shape),
        eos_ids=unique(eos, *map(added.get, names.ends), pad),
        bos_id=added.get(names.bos),
        pad_id=pad,
        shift=names.shift,
        max_length=shape.max_length,
    )


def tensor_names(names: Names, shape: Shape) -> dict[str, str]:
    """Parameter name of ``Transformer`` to tensor name in the checkpoint, for every parameter (a bijection)."""
    found = {f"{ours}.weight": f"{theirs}.weight" for ours, theirs in names.top.items()}
    if shape.tied:
        del found["lm_head.weight"]
    for i in range(shape.layers):
        for ours, theirs in names.in_layer.items():
            tensor = f"{names.layer.format(i)}.{theirs}"
            found[f"layers.{i}.{ours}.weight"] = f"{tensor}.weight"
            if shape.qkv_bias and ours.endswith(("q_proj", "k_proj", "v_proj")):
                found[f"layers.{i}.{ours}.bias"] = f"{tensor}.bias"
    return found
