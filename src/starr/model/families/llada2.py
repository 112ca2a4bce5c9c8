"""LLaDA2.0 and LLaDA2.1: block-causal mixture of experts with fused QKV, q/k norms and half-rotated heads.

LLaDA2.2 has the same architecture name but another router (``expert_capacity``) and tokens that move within a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starr.errors import LoadError
from starr.model.families.base import Family
from starr.model.families.names import Names, make_spec
from starr.model.families.qwen import check_routing, read_shape, write_shape
from starr.model.files.config import Config, read_real, read_whole, require
from starr.model.network.shape import Routing, Shape
from starr.model.spec import Habits, ModelSpec

BLOCK = 32
FIXED: dict[str, object] = {
    "score_function": "sigmoid",
    "router_dtype": "fp32",
    "norm_topk_prob": True,
    "moe_router_enable_expert_bias": True,
    "use_qk_norm": True,
    "use_qkv_bias": False,
    "use_bias": False,
    "use_rmsnorm": True,
    "norm_head": False,
}
NAMES = Names(
    mask="<|mask|>",
    mask_id=156895,
    bos="<|startoftext|>",
    ends=("<|role_end|>",),
    top={"embed": "model.word_embeddings", "norm": "model.norm", "lm_head": "lm_head"},
    layer="model.layers.{}",
    in_layer={
        "input_norm": "input_layernorm",
        "attention.qkv": "attention.query_key_value",
        "attention.o_proj": "attention.dense",
        "mlp_norm": "post_attention_layernorm",
        "mlp": "mlp",
    },
    qk_norms={"attention.q_norm": "attention.query_layernorm", "attention.k_norm": "attention.key_layernorm"},
    router="mlp.gate",
    router_bias="mlp.gate.expert_bias",
    shared="mlp.shared_experts",
)
THRESHOLD = Habits(strategy="threshold:origin=llada2,tau=0.95", cache="exact")
EDIT = Habits(strategy="edit", cache="exact")


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; models named 2.1 edit by default, as their authors run them."""
    if config.get("expert_capacity"):
        raise LoadError(
            f"{name} is LLaDA2.2, which is not supported: its router works on whole blocks, and its decoding inserts "
            "and deletes tokens.",
            hint="LLaDA2.0 and 2.1 are supported.",
        )
    require(config, FIXED)
    shape = read_shape(config, qk_norm=True, routing=read_routing(config), rotary_dim=read_rotary_dim(config))
    block = read_whole(config, "block_size", BLOCK)
    return make_spec(NAMES, "llada2", name, shape, config, added, block, EDIT if "2.1" in name else THRESHOLD)


def read_routing(config: Config) -> Routing:
    """How LLaDA2 chooses experts, from its config."""
    inner = read_whole(config, "moe_intermediate_size")
    first = config.get("first_k_dense_replace")
    if type(first) is not int or first < 0:
        raise LoadError(f"config.json: first_k_dense_replace must be a whole number, not {first!r}.")
    routing = Routing(
        experts=read_whole(config, "num_experts"),
        chosen=read_whole(config, "num_experts_per_tok"),
        width=inner,
        router="sigmoid",
        normalised=True,
        scale=read_real(config, "routed_scaling_factor"),
        bias=True,
        groups=read_whole(config, "n_group"),
        open_groups=read_whole(config, "topk_group"),
        shared_width=inner * read_whole(config, "num_shared_experts"),
        first=first,
    )
    return check_routing(routing)


def read_rotary_dim(config: Config) -> int:
    """Rotated entries of a head: the factor decides, and ``rotary_dim`` must say the same where it is given."""
    even = read_whole(config, "hidden_size") // read_whole(config, "num_attention_heads")
    head = read_whole(config, "head_dim", even)
    found = int(head * read_real(config, "partial_rotary_factor"))
    require(config, {"rotary_dim": found})
    return found


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
    shape = spec.shape
    return {
        "architectures": ["LLaDA2MoeModelLM"],
        "model_type": "llada2_moe",
        **write_shape(spec),
        **FIXED,
        **write_routing(shape),
        "block_size": spec.block_length,
        "rotary_dim": shape.rotary_width,
        "partial_rotary_factor": shape.rotary_width / shape.head_width,
    }


def write_routing(shape: Shape) -> dict[str, Any]:
    """The same as its config holds it."""
    routing = shape.routing
    if routing is None:
        raise ValueError("LLaDA2 has experts")
    return {
        "num_experts": routing.experts,
        "num_experts_per_tok": routing.chosen,
        "moe_intermediate_size": routing.width,
        "routed_scaling_factor": routing.scale,
        "n_group": routing.groups,
        "topk_group": routing.open_groups,
        "num_shared_experts": routing.shared_width // routing.width,
        "first_k_dense_replace": routing.first,
    }


FAMILY = Family(
    "llada2",
    ("LLaDA2MoeModelLM",),
    "LLaDA2.0, LLaDA2.1",
    read_config,
    write_config,
    NAMES,
    reply_tag="<role>ASSISTANT</role>",
)
