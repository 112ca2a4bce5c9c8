"""Fast-dLLM v2: Qwen2.5's layers with q/k/v biases, block-causal, logits shifted by one.

The first token of a block comes from the forward that seals the block before it; a block is decided in sub-blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starr.model.families.base import Family
from starr.model.families.names import QWEN, make_spec
from starr.model.families.qwen import read_shape, write_shape
from starr.model.files.config import Config, whole
from starr.model.spec import Habits, ModelSpec

NAMES = replace(QWEN, mask="|<MASK>|", mask_id=151665, bos="<|endoftext|>", shift=True)
HABITS = Habits(strategy="threshold:origin=fast_dllm_v2,tau=0.9", cache="exact", window=8)


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``added`` maps the tokenizer's added tokens to their ids."""
    shape = read_shape(config, qkv_bias=True)
    block = whole(config, "bd_size")
    habits = replace(HABITS, window=min(8, block))
    return make_spec(NAMES, "fast_dllm_v2", name, shape, config, added, block, habits)


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
    head = {"architectures": ["Fast_dLLM_QwenForCausalLM"], "model_type": "Fast_dLLM_Qwen"}
    return {**head, "bd_size": spec.block_length, **write_shape(spec)}


FAMILY = Family(
    "fast_dllm_v2",
    ("Fast_dLLM_QwenForCausalLM",),
    "Fast-dLLM v2",
    read_config,
    write_config,
    NAMES,
)
