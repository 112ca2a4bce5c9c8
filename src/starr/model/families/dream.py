"""Dream-7B, Dream-Coder and DiffuCoder: Qwen2's config keys and names, q/k/v biases, logits shifted by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starr.model.families.base import Family
from starr.model.families.names import QWEN, make_spec
from starr.model.families.qwen import read_shape, write_shape
from starr.model.files.config import Config, require
from starr.model.spec import ModelSpec
from starr.model.text import chat

# DiffuCoder pads with <|dlm_pad|> although its config names <|endoftext|>.
NAMES = replace(QWEN, shift=True, ends=("<|im_end|>", "<|dlm_pad|>"))


def read_config(config: Config, added: Mapping[str, int], name: str) -> ModelSpec:
    """config.json to a specification; ``added`` maps the tokenizer's added tokens to their ids."""
    require(config, {"use_mrope": False})
    given = {"tie_word_embeddings": False, **config}  # Qwen2's own default; the released files name it
    shape = read_shape(given, qkv_bias=True)
    require(config, {"head_dim": shape.width // shape.heads})
    return make_spec(NAMES, "dream", name, shape, config, added)


def write_config(spec: ModelSpec) -> dict[str, Any]:
    """The inverse of ``read_config``, under the keys of the released checkpoints."""
    return {"architectures": ["DreamModel"], "model_type": "Dream", "use_mrope": False, **write_shape(spec)}


FAMILY = Family(
    name="dream",
    architectures=("DreamModel",),
    members="Dream-7B, Dream-Coder, DiffuCoder",
    read_config=read_config,
    write_config=write_config,
    names=NAMES,
    template=chat.DREAM_TEMPLATE,
    template_tokens=("<|im_start|>", "<|im_end|>"),
)
