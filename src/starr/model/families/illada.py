"""iLLaDA-8B: Llama's layers and names, full attention, tied head; its mask is id 5, which none of its files says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starr.model.families.base import Family
from starr.model.families.names import QWEN, make_spec
from starr.model.families.qwen import read_shape, write_shape
from starr.model.files.config import Config, require
from starr.model.spec import ModelSpec

NAMES = replace(QWEN, mask="<[MASK]>", mask_id=5, bos="<[begin▁of▁sentence]>", ends=())


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``layer_norm_eps`` would mean another norm."""
    require(config, {"layer_norm_eps": None})
    return make_spec(NAMES, "illada", name, read_shape(config), config, added)


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
    return {"architectures": ["ILLaDAForCausalLM"], "model_type": "illada", **write_shape(spec)}


FAMILY = Family("illada", ("ILLaDAForCausalLM",), "iLLaDA-8B", read_config, write_config, NAMES)
