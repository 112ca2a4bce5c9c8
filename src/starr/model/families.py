"""Which family reads a config.json: decided by its ``architectures``, because model_type is shared by unlike models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starr.errors import LoadError
from starr.model import chat, dream, llada
from starr.model.config import Config
from starr.model.layers import Shape
from starr.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Family:
    """How one family's checkpoints are read and written, and its chat template for repositories that ship none."""

    architecture: str
    members: str
    read_config: Callable[[Config, Mapping[str, int], str], ModelSpec]
    write_config: Callable[[ModelSpec], dict[str, Any]]
    export_names: Callable[[Shape], dict[str, str]]
    template: str
    template_tokens: tuple[str, ...]  # the template is used only if the tokenizer has these


FAMILIES: dict[str, Family] = {
    "llada": Family(
        llada.ARCHITECTURE,
        "LLaDA-8B, LLaDA-1.5",
        llada.read_config,
        llada.write_config,
        llada.export_names,
        chat.LLADA_TEMPLATE,
        ("<|startoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    ),
    "dream": Family(
        dream.ARCHITECTURE,
        "Dream-7B, Dream-Coder, DiffuCoder",
        dream.read_config,
        dream.write_config,
        dream.export_names,
        chat.DREAM_TEMPLATE,
        ("<|im_start|>", "<|im_end|>"),
    ),
}

# Diffusion models people will try, and why the one transformer does not serve them.
REFUSED = {
    "LLaDAMoEModel": "LLaDA-MoE, a mixture of experts",
    "LLaDAMoEModelLM": "LLaDA-MoE, a mixture of experts",
    "LLaDA2MoeModelLM": "LLaDA2, a block-causal mixture of experts",
    "ILLaDAForCausalLM": "iLLaDA",
    "SDARForCausalLM": "SDAR, block-causal with q/k norms",
    "SDARMoeForCausalLM": "SDAR-MoE, a mixture of experts",
    "Fast_dLLM_QwenForCausalLM": "Fast-dLLM v2, block-causal",
    "NemotronLabsDiffusionModel": "Nemotron-Labs-Diffusion",
    "DiffusionGemmaForBlockDiffusion": "DiffusionGemma, which has no mask token",
}


def family_of(config: Config) -> Family:
    """The family named by ``architectures``; any other is refused by name."""
    listed = config.get("architectures")
    architecture = listed[0] if isinstance(listed, list) and listed else None
    for family in FAMILIES.values():
        if family.architecture == architecture:
            return family
    known = ", ".join(f"{family.architecture} ({family.members})" for family in FAMILIES.values())
    if architecture is None:
        raise LoadError("config.json names no architecture.", hint=f"Set architectures to one of: {known}.")
    what = f" ({REFUSED[architecture]})" if architecture in REFUSED else ""
    raise LoadError(f"Architecture {architecture!r}{what} is not supported.", hint=f"Supported: {known}.")
