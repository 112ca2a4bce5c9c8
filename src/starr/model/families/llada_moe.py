"""LLaDA-MoE-7B-A1B: full attention, q/k norms, routed experts in every layer.

The reference takes the chosen experts' probabilities as they are, whatever ``norm_topk_prob`` says. Its config class
fills many keys with -1, so nothing is taken from defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starr.errors import LoadError
from starr.model.families.base import Family
from starr.model.families.names import QWEN, make_spec
from starr.model.families.qwen import read_shape, read_softmax_routing, write_shape
from starr.model.files.config import Config, read_real, require
from starr.model.spec import ModelSpec

NAMES = replace(QWEN, mask_id=156895, bos="<|startoftext|>", ends=("<|role_end|>",), router_bias="mlp.expert_bias")
FIXED: dict[str, object] = {"qk_layernorm": True, "clip_qkv": None, "shared_expert_intermediate_size": None}


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``added`` maps the tokenizer's added tokens to their ids."""
    require(config, FIXED)
    plain = [layer for layer, dense in enumerate(config.get("moe_layer_freq") or []) if not dense]
    if plain:
        raise LoadError(f"config.json: moe_layer_freq makes layer {plain[0]} dense, only experts are supported.")
    routing = read_softmax_routing(config, "expert_intermediate_size", normalised=False)
    routing = replace(routing, bias=bool(config.get("moe_router_enable_expert_bias")))
    sizes = {"intermediate_size": routing.width, "tie_word_embeddings": False, **config}
    shape = read_shape(sizes, qk_norm=True, routing=routing)
    share = read_real(config, "partial_rotary_factor") if config.get("partial_rotary_factor") is not None else 1.0
    if share < 1:
        shape = replace(shape, rotary_dim=int(shape.head_width * share))
    return make_spec(NAMES, "llada_moe", name, shape, config, added)


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
    routing, shape = spec.shape.routing, spec.shape
    if routing is None:
        raise ValueError("LLaDA-MoE has experts")
    written = write_shape(spec)
    del written["intermediate_size"]
    return {
        "architectures": ["LLaDAMoEModelLM"],
        "model_type": "llada",
        **written,
        **FIXED,
        "num_experts": routing.experts,
        "num_experts_per_tok": routing.chosen,
        "expert_intermediate_size": routing.width,
        "moe_router_enable_expert_bias": routing.bias,
        "moe_layer_freq": [1] * shape.layers,
        "partial_rotary_factor": shape.rotary_width / shape.head_width,
    }


FAMILY = Family(
    "llada_moe",
    ("LLaDAMoEModelLM", "LLaDAMoEModel"),
    "LLaDA-MoE-7B-A1B",
    read_config,
    write_config,
    NAMES,
)
