"""Dream-7B, Dream-Coder and DiffuCoder: Qwen2's config keys and names, q/k/v biases, logits shifted by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starr.model.config import Config, checked, real, require, token, unique, whole
from starr.model.spec import ModelSpec
from starr.model.transformer import Shape

ARCHITECTURE = "DreamModel"

FIXED: dict[str, object] = {"hidden_act": "silu", "use_mrope": False, "use_sliding_window": False}

LAYER_NAMES = {
    "input_norm": "input_layernorm",
    "attention.q_proj": "self_attn.q_proj",
    "attention.k_proj": "self_attn.k_proj",
    "attention.v_proj": "self_attn.v_proj",
    "attention.o_proj": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "mlp.gate_proj": "mlp.gate_proj",
    "mlp.up_proj": "mlp.up_proj",
    "mlp.down_proj": "mlp.down_proj",
}


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``added`` maps the tokenizer's added tokens to their ids."""
    heads, width = whole(config, "num_attention_heads"), whole(config, "hidden_size")
    require(config, {**FIXED, "rope_scaling": None, "head_dim": width // heads})
    max_length = whole(config, "max_position_embeddings")
    shape = Shape(
        vocab_size=whole(config, "vocab_size"),
        width=width,
        layers=whole(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=whole(config, "num_key_value_heads", heads),
        mlp_width=whole(config, "intermediate_size"),
        rope_theta=real(config, "rope_theta"),
        norm_eps=real(config, "rms_norm_eps"),
        qkv_bias=True,
        tied=bool(config.get("tie_word_embeddings")),
        max_length=max_length,
    )
    checked(shape)
    eos = token(config, "eos_token_id", added.get("<|endoftext|>"), shape)
    pad = token(config, "pad_token_id", eos, shape)
    return ModelSpec(
        name=name,
        family="dream",
        shape=shape,
        mask_id=token(config, "mask_token_id", added.get("<|mask|>"), shape),
        # DiffuCoder pads with <|dlm_pad|> although its config names <|endoftext|>.
        eos_ids=unique(eos, added.get("<|im_end|>"), pad, added.get("<|dlm_pad|>")),
        bos_id=added.get("<|beginoftext|>"),
        pad_id=pad,
        shift=True,
        max_length=max_length,
    )


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``: a config.json that Dream's own code reads too."""
    shape = spec.shape
    return {
        "architectures": [ARCHITECTURE],
        "model_type": "Dream",
        **FIXED,
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "intermediate_size": shape.mlp_width,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.norm_eps,
        "tie_word_embeddings": shape.tied,
        "max_position_embeddings": spec.max_length,
        "mask_token_id": spec.mask_id,
        "eos_token_id": spec.eos_ids[0],
        "pad_token_id": spec.pad_id,
    }


def export_names(shape: Shape) -> dict[str, str]:
    """Parameter name of ``Transformer`` to tensor name in the checkpoint, for every parameter (a bijection)."""
    names = {"embed.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight"}
    if not shape.tied:
        names["lm_head.weight"] = "lm_head.weight"
    for i in range(shape.layers):
        for ours, theirs in LAYER_NAMES.items():
            names[f"layers.{i}.{ours}.weight"] = f"model.layers.{i}.{theirs}.weight"
        for part in ("q_proj", "k_proj", "v_proj") if shape.qkv_bias else ():
            names[f"layers.{i}.attention.{part}.bias"] = f"model.layers.{i}.self_attn.{part}.bias"
    return names
