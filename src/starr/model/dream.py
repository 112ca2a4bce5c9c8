"""Dream-7B, Dream-Coder and DiffuCoder: Qwen2's config keys and names, q/k/v biases, logits shifted by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starr.model.config import Config, checked, real, require, whole
from starr.model.layers import Shape
from starr.model.names import Names, make_spec, tensor_names
from starr.model.spec import ModelSpec

ARCHITECTURE = "DreamModel"

FIXED: dict[str, object] = {"hidden_act": "silu", "use_mrope": False, "use_sliding_window": False}

NAMES = Names(
    family="dream",
    shift=True,
    mask="<|mask|>",
    bos="<|beginoftext|>",
    # DiffuCoder pads with <|dlm_pad|> although its config names <|endoftext|>.
    ends=("<|im_end|>", "<|dlm_pad|>"),
    top={"embed": "model.embed_tokens", "norm": "model.norm", "lm_head": "lm_head"},
    layer="model.layers.{}",
    in_layer={
        "input_norm": "input_layernorm",
        "attention.q_proj": "self_attn.q_proj",
        "attention.k_proj": "self_attn.k_proj",
        "attention.v_proj": "self_attn.v_proj",
        "attention.o_proj": "self_attn.o_proj",
        "mlp_norm": "post_attention_layernorm",
        "mlp.gate_proj": "mlp.gate_proj",
        "mlp.up_proj": "mlp.up_proj",
        "mlp.down_proj": "mlp.down_proj",
    },
)


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``added`` maps the tokenizer's added tokens to their ids."""
    heads, width = whole(config, "num_attention_heads"), whole(config, "hidden_size")
    require(config, {**FIXED, "rope_scaling": None, "head_dim": width // heads})
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
        max_length=whole(config, "max_position_embeddings"),
    )
    return make_spec(NAMES, name, checked(shape), config, added)


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
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
    """Parameter name of ``Transformer`` to tensor name in the checkpoint."""
    return tensor_names(NAMES, shape)
