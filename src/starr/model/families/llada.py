"""LLaDA-8B-Base, LLaDA-8B-Instruct and LLaDA-1.5: OLMo-style config keys and ``model.transformer`` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starr.model.families.base import Family
from starr.model.families.names import Names, make_spec
from starr.model.files.config import Config, check_shape, read_real, read_whole, require
from starr.model.network.shape import Shape
from starr.model.spec import ModelSpec
from starr.model.text import chat

# What the one transformer computes; LLaDA's remote code has switches for other variants, no checkpoint uses them.
FIXED: dict[str, object] = {
    "activation_type": "silu",
    "alibi": False,
    "attention_layer_norm": False,
    "bias_for_layer_norm": False,
    "block_group_size": 1,
    "block_type": "llama",
    "include_bias": False,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "rope": True,
    "rope_full_precision": True,
    "rope_scaling": None,
    "scale_logits": False,
}

# LLaDA calls the gate ``ff_proj`` and the down projection ``ff_out``; the head is a second, top-level ``ff_out``.
NAMES = Names(
    mask="<|mdm_mask|>",
    bos="<|startoftext|>",
    ends=("<|eot_id|>",),
    top={
        "embed": "model.transformer.wte",
        "norm": "model.transformer.ln_f",
        "lm_head": "model.transformer.ff_out",
    },
    layer="model.transformer.blocks.{}",
    in_layer={
        "input_norm": "attn_norm",
        "attention.q_proj": "q_proj",
        "attention.k_proj": "k_proj",
        "attention.v_proj": "v_proj",
        "attention.o_proj": "attn_out",
        "mlp_norm": "ff_norm",
        "mlp.gate_proj": "ff_proj",
        "mlp.up_proj": "up_proj",
        "mlp.down_proj": "ff_out",
    },
)


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``added`` maps the tokenizer's added tokens to their ids."""
    require(config, FIXED)
    heads = read_whole(config, "n_heads")
    width = read_whole(config, "d_model")
    shape = Shape(
        vocab_size=read_whole(config, "embedding_size", read_whole(config, "vocab_size")),
        width=width,
        layers=read_whole(config, "n_layers"),
        heads=heads,
        kv_heads=read_whole(config, "n_kv_heads", 1 if config.get("multi_query_attention") else heads),
        mlp_width=read_whole(config, "mlp_hidden_size", width * read_whole(config, "mlp_ratio", 4)),
        rope_theta=read_real(config, "rope_theta"),
        norm_eps=read_real(config, "rms_norm_eps", 1.0),
        qkv_bias=bool(config.get("include_qkv_bias")),
        tied=bool(config.get("weight_tying")),
        max_length=read_whole(config, "max_sequence_length"),
    )
    return make_spec(NAMES, "llada", name, check_shape(shape), config, added)


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
    shape = spec.shape
    return {
        "architectures": ["LLaDAModelLM"],
        "model_type": "llada",
        **FIXED,
        "d_model": shape.width,
        "embedding_size": shape.vocab_size,
        "vocab_size": shape.vocab_size,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "n_kv_heads": shape.kv_heads,
        "mlp_hidden_size": shape.mlp_width,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.norm_eps,
        "include_qkv_bias": shape.qkv_bias,
        "weight_tying": shape.tied,
        "max_sequence_length": spec.max_length,
        "mask_token_id": spec.mask_id,
        "eos_token_id": spec.eos_ids[0],
        "pad_token_id": spec.pad_id,
        "use_cache": False,
    }


FAMILY = Family(
    name="llada",
    architectures=("LLaDAModelLM",),
    members="LLaDA-8B, LLaDA-1.5",
    read_config=read_config,
    write_config=write_config,
    names=NAMES,
    template=chat.LLADA_TEMPLATE,
    template_tokens=("<|startoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
)
