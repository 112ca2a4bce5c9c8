"""What the families with Qwen's or Llama's config keys share: sizes read from config.json and written back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starr.errors import LoadError
from starr.model.files.config import Config, checked, flag, real, require, whole
from starr.model.network.shape import Routing, Shape
from starr.model.spec import ModelSpec

SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "mlp_width",
    "max_position_embeddings": "max_length",
}
# Variants that no checkpoint of these families uses and the one transformer does not compute.
FIXED: dict[str, object] = {
    "hidden_act": "silu",
    "rope_scaling": None,
    "use_sliding_window": False,
    "attention_bias": False,
    "mlp_bias": False,
}


def read_shape(config: Config, **switches: Any) -> Shape:
    """A shape from Qwen's keys; ``switches`` are the fields of Shape that the family knows.

    ``tie_word_embeddings`` must be there: what its absence means differs between releases of the library that wrote it.
    ``rope_theta`` may stand inside ``rope_parameters``, where newer releases write it.
    """
    require(config, FIXED)
    sizes = {ours: whole(config, theirs) for theirs, ours in SIZES.items()}
    head_dim = None if config.get("head_dim") is None else whole(config, "head_dim")
    fields: dict[str, Any] = {
        **sizes,
        "kv_heads": whole(config, "num_key_value_heads", sizes["heads"]),
        "head_dim": None if head_dim and head_dim * sizes["heads"] == sizes["width"] else head_dim,
        "rope_theta": real(rope(config), "rope_theta"),
        "norm_eps": real(config, "rms_norm_eps", 1.0),
        "tied": flag(config, "tie_word_embeddings"),
        "rope_float32": False,
    }
    return checked(Shape(**{**fields, **switches}))


def rope(config: Config) -> Config:
    """Where the rotary keys stand; only RoPE without scaling is computed."""
    inside = config.get("rope_parameters")
    if not isinstance(inside, Mapping):
        return config
    if inside.get("rope_type", "default") != "default":
        raise LoadError(f"config.json: rope_type={inside['rope_type']!r} is not supported, only 'default' is.")
    return {**config, **inside}


def read_softmax_routing(config: Config, width_key: str, normalised: bool) -> Routing:
    """The experts of Qwen3-MoE's and LLaDA-MoE's configs: every layer has them."""
    require(config, {"decoder_sparse_step": 1, "mlp_only_layers": []})
    routing = Routing(
        experts=whole(config, "num_experts"),
        chosen=whole(config, "num_experts_per_tok"),
        width=whole(config, width_key),
        normalised=normalised,
    )
    return checked_routing(routing)


def checked_routing(routing: Routing) -> Routing:
    """``routing`` itself, if its numbers fit together."""
    within = routing.experts // routing.groups * routing.open_groups
    if routing.experts % routing.groups or routing.open_groups > routing.groups or routing.chosen > within:
        raise LoadError(
            f"config.json: {routing.chosen} experts cannot be chosen from {routing.open_groups} of {routing.groups} "
            f"groups of {routing.experts} experts.",
            hint="Groups must divide the experts, and the open ones must hold as many as are chosen.",
        )
    return routing


def write_shape(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_shape``, with the token ids."""
    shape = spec.shape
    return {
        **{theirs: getattr(shape, ours) for theirs, ours in SIZES.items()},
        **{key: value for key, value in FIXED.items() if key not in ("attention_bias", "mlp_bias")},
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_width,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.norm_eps,
        "tie_word_embeddings": shape.tied,
        "mask_token_id": spec.mask_id,
        "eos_token_id": spec.eos_ids[0],
        "pad_token_id": spec.pad_id,
    }
