"""Models with the layers, config keys and tensor names of Qwen or Llama: SDAR and its relatives.

Each architecture is one row of ``ROWS``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from starr.errors import LoadError
from starr.model.families.base import Family
from starr.model.families.names import QWEN, Names, make_spec
from starr.model.families.qwen import read_shape, read_softmax_routing, write_shape
from starr.model.files.config import Config, read_flag, read_whole, require
from starr.model.network.shape import Shape
from starr.model.spec import Habits, ModelSpec
from starr.model.text import chat


@dataclass(frozen=True, slots=True)
class Variant:
    """The properties of one architecture."""

    family: str
    members: str
    names: Names
    model_type: str
    block: int | None  # the default of ``block_key``; 0 is full attention, None has no default
    strategy: str
    qk_norm: bool = True
    qkv_bias: bool = False
    experts: bool = False
    from_prompt: bool = False  # blocks are counted from the prompt's end, not from position 0
    template: str | None = None  # for a repository that ships none
    block_key: str = "block_size"
    window: int | None = None  # positions decided together, at most a block
    fixed: Mapping[str, object] = field(default_factory=dict)  # the only values that config.json may have


SDAR_NAMES = replace(QWEN, mask="<|MASK|>", bos="<|endoftext|>")
SEED_NAMES = replace(QWEN, mask="<[MASK]>", mask_id=5, bos="<[begin▁of▁sentence]>", ends=())
NVIDIA_NAMES = replace(
    QWEN,
    mask_id=151662,
    ends=("<|im_end|>",),
    top={"embed": "encoder.embed_tokens", "norm": "encoder.norm", "lm_head": "diffusion_head"},
    layer="encoder.layers.{}",
)
DYNAMIC = "threshold:origin=sdar,tau=0.85"
CAREFUL = "threshold:origin=sdar,tau=0.95"
FAST_DLLM = "threshold:origin=fast_dllm_v2,tau=0.9"

FAST_DLLM_NAMES = replace(QWEN, mask="|<MASK>|", mask_id=151665, bos="<|endoftext|>", shift=True)

ROWS = {
    "ILLaDAForCausalLM": Variant(
        "illada", "iLLaDA-8B", SEED_NAMES, "illada", 0, "starr", qk_norm=False, fixed={"layer_norm_eps": None}
    ),
    "SDARForCausalLM": Variant("sdar", "SDAR, TraDo", SDAR_NAMES, "sdar", 4, DYNAMIC),
    "SDARMoeForCausalLM": Variant("sdar_moe", "SDAR-30B-A3B", SDAR_NAMES, "sdar_moe", 4, DYNAMIC, experts=True),
    "StableDiffcoderForCausalLM": Variant(
        "stable_diffcoder", "Stable-DiffCoder-8B", SEED_NAMES, "llama", 4, CAREFUL, qk_norm=False
    ),
    "DreamForCausalLM": Variant(
        "dream_reasoner", "DreamReasoner-8B", replace(QWEN, mask_id=151669), "Dream", 32, CAREFUL
    ),
    "A2DQwen3LMHeadModel": Variant(
        "a2d_qwen3", "dllm-hub Qwen3-0.6B-diffusion", QWEN, "a2d-qwen3", None, "confidence",
        from_prompt=True, template=chat.NO_THINKING_TEMPLATE,
    ),
    "A2DQwen2LMHeadModel": Variant(
        "a2d_qwen2", "dllm-hub Qwen2.5-Coder-0.5B-diffusion", QWEN, "a2d-qwen2", None, "confidence",
        qk_norm=False, qkv_bias=True, from_prompt=True, template=chat.DREAM_TEMPLATE,
    ),
    "RND1LM": Variant(
        "rnd1", "RND1-30B-A3B", replace(QWEN, mask_id=151669, shift=True), "rnd1", 0, "starr", experts=True
    ),
    "DiffEncoderModel": Variant(
        "diff_encoder", "Nemotron-Diffusion-Research-8B", NVIDIA_NAMES, "diff_encoder", 32, CAREFUL
    ),
    "NemotronLabsDiffusionModel": Variant(
        "nemotron", "Nemotron-Labs-Diffusion", replace(NVIDIA_NAMES, mask_id=100), "nemotron_labs_diffusion", 32,
        CAREFUL, qk_norm=False,
    ),
    # The forward that seals a block also gives the first token of the next one; a block is decided in sub-blocks.
    "Fast_dLLM_QwenForCausalLM": Variant(
        "fast_dllm_v2", "Fast-dLLM v2", FAST_DLLM_NAMES, "Fast_dLLM_Qwen", 32, FAST_DLLM, qk_norm=False, qkv_bias=True,
        block_key="bd_size", window=8,
    ),
}  # fmt: skip
# What the names of dllm's checkpoints say and their config.json does not: positions of a block, 0 for full attention.
RELEASED = {
    "Qwen3-0.6B-diffusion-mdlm-v0.1": 0,
    "Qwen3-0.6B-diffusion-bd3lm-v0.1": 32,
    "Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1": 0,
    "Qwen2.5-Coder-0.5B-Instruct-diffusion-bd3lm-v0.1": 32,
}
ARCHITECTURE_OF = {row.family: architecture for architecture, row in ROWS.items()}


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``added`` maps the tokenizer's added tokens to their ids."""
    row = ROWS[config["architectures"][0]]
    require(config, row.fixed)
    block = read_block_length(row, config, name)
    spec = make_spec(row.names, row.family, name, read_variant_shape(row, config), config, added)
    if block is None:
        return replace(spec, habits=Habits(strategy=row.strategy))
    window = None if row.window is None else min(row.window, block)
    habits = Habits(strategy=row.strategy, cache="exact", window=window)
    return replace(spec, block_length=block, from_prompt=row.from_prompt, habits=habits)


def read_variant_shape(row: Variant, config: Config) -> Shape:
    """Read the network's shape from a variant's config."""
    routing = None
    if row.experts:
        routing = read_softmax_routing(config, "moe_intermediate_size", read_flag(config, "norm_topk_prob"))
    return read_shape(config, qk_norm=row.qk_norm, qkv_bias=row.qkv_bias, routing=routing)


def read_block_length(row: Variant, config: Config, name: str) -> int | None:
    """Read the positions of a block; None is full attention.

    SDAR's variants with longer blocks end in -b8 to -b64, and their config may still say 4. The config of dllm-hub's
    models does not say which attention they were trained with: their name does.
    """
    usual = row.block if row.block is not None else RELEASED.get(name.rpartition("/")[2])
    said = usual if config.get(row.block_key) is None else config[row.block_key]
    if said is None:
        raise LoadError(
            f"config.json of {name} does not say whether its attention is full (mdlm) or in blocks (bd3lm).",
            hint="Use --attention full for mdlm or --attention blocks:32 for bd3lm.",
            param="attention",
        )
    if said == 0:
        return None
    said = read_whole({row.block_key: said}, row.block_key)
    named = re.search(r"-b(\d+)$", name)
    if named and int(named[1]) != said and said == row.block:
        warnings.warn(f"{name}: blocks of {named[1]} by its name, config.json says {said}.", stacklevel=2)
        return int(named[1])
    return said


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
    architecture = ARCHITECTURE_OF[spec.family]
    row = ROWS[architecture]
    head = {"architectures": [architecture], "model_type": row.model_type, row.block_key: spec.block_length or 0}
    written = head | write_shape(spec)
    routing = spec.shape.routing
    if routing is not None:
        written |= {
            "num_experts": routing.experts,
            "num_experts_per_tok": routing.chosen,
            "moe_intermediate_size": routing.width,
            "norm_topk_prob": routing.normalised,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        }
    return written


FAMILIES = tuple(
    Family(
        row.family,
        (architecture,),
        row.members,
        read_config,
        write_config,
        row.names,
        template=row.template,
        template_tokens=("<|im_start|>", "<|im_end|>"),
        template_variables={"enable_thinking": False} if row.block is None else {},
        any_attention=row.block_key == "block_size",
    )
    for architecture, row in ROWS.items()
)
