"""What the families with Qwen's or Llama's config keys share: sizes read from config.json and written back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from starr.errors import LoadError
from starr.model.files.config import Config, check_shape, read_flag, read_real, read_whole, require
from starr.model.network.shape import Routing, Shape, Yarn
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
    "use_sliding_window": False,
    "attention_bias": False,
    "mlp_bias": False,
}


def read_shape(config: Config, **switches: Any) -> Shape:
    """A shape from Qwen's keys; ``switches`` are the fields of Shape that the family knows.

    ``tie_word_embeddings`` must be there: what its absence means differs between releases of the library that wrote it,
    so the loader decides by the weights. ``rope_theta`` may stand inside ``rope_parameters``, where newer releases
    write it.
    """
    require(config, FIXED)
    sizes = {ours: read_whole(config, theirs) for theirs, ours in SIZES.items()}
    head_dim = None if config.get("head_dim") is None else read_whole(config, "head_dim")
    fields: dict[str, Any] = {
        **sizes,
        "kv_heads": read_whole(config, "num_key_value_heads", sizes["heads"]),
        "head_dim": None if head_dim and head_dim * sizes["heads"] == sizes["width"] else head_dim,
        "rope_theta": read_real(find_rotary_keys(config), "rope_theta"),
        "norm_eps": read_real(config, "rms_norm_eps", 1.0),
        "tied": read_flag(config, "tie_word_embeddings"),
        "rope_float32": False,
        "yarn": (yarn := read_yarn(config)),
    }
    if yarn is not None and find_rotary_keys(config).get("llama_4_scaling_beta"):
        fields["max_length"] = min(sizes["max_length"], yarn.original)
    return check_shape(Shape(**{**fields, **switches}))


def find_rotary_keys(config: Config) -> Config:
    """Where the rotary keys stand."""
    inside = config.get("rope_parameters")
    return {**config, **inside} if isinstance(inside, Mapping) else config


def read_yarn(config: Config) -> Yarn | None:
    """How rotary positions are stretched, under ``rope_scaling`` or ``rope_parameters``; None is not at all.

    ``llama_4_scaling_beta`` scales queries beyond the original length only; ``read_shape`` keeps texts within it.
    """
    given = config.get("rope_parameters")
    given = config.get("rope_scaling") if given is None else given
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise LoadError(f"config.json: rope_scaling must be an object or null, not {repr(given)[:40]}.")
    kind = given.get("rope_type", given.get("type", "default"))
    if kind == "default":
        return None
    if kind != "yarn":
        raise LoadError(f"config.json: rope_type={kind!r} is not supported, only 'default' and 'yarn' are.")
    require(given, {"truncate": True})
    factor = read_real(given, "factor")
    return Yarn(
        factor=factor,
        original=read_whole(given, "original_max_position_embeddings"),
        beta_fast=read_real({"beta_fast": 32.0, **given}, "beta_fast"),
        beta_slow=read_real({"beta_slow": 1.0, **given}, "beta_slow"),
        attention=compute_yarn_attention(given, factor),
    )


def compute_yarn_attention(given: Config, factor: float) -> float:
    """By how much cosines and sines are multiplied."""
    if given.get("attention_factor") is not None:
        return read_real(given, "attention_factor")

    def scale(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if given.get("mscale") and given.get("mscale_all_dim"):
        return scale(read_real(given, "mscale")) / scale(read_real(given, "mscale_all_dim"))
    return scale(1.0)


def read_softmax_routing(config: Config, width_key: str, normalised: bool) -> Routing:
    """The experts of Qwen3-MoE's and LLaDA-MoE's configs: every layer has them."""
    require(config, {"decoder_sparse_step": 1, "mlp_only_layers": []})
    routing = Routing(
        experts=read_whole(config, "num_experts"),
        chosen=read_whole(config, "num_experts_per_tok"),
        width=read_whole(config, width_key),
        normalised=normalised,
    )
    return check_routing(routing)


def check_routing(routing: Routing) -> Routing:
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
        "rope_scaling": None if shape.yarn is None else write_yarn(shape.yarn),
        "rms_norm_eps": shape.norm_eps,
        "tie_word_embeddings": shape.tied,
        "mask_token_id": spec.mask_id,
        "eos_token_id": spec.eos_ids[0],
        "pad_token_id": spec.pad_id,
    }


def write_yarn(yarn: Yarn) -> dict[str, Any]:
    """The inverse of ``read_yarn``."""
    return {
        "rope_type": "yarn",
        "factor": yarn.factor,
        "original_max_position_embeddings": yarn.original,
        "beta_fast": yarn.beta_fast,
        "beta_slow": yarn.beta_slow,
        "attention_factor": yarn.attention,
    }
