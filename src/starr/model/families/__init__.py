"""Which family reads a config.json: decided by its ``architectures``, because model_type is shared by unlike models."""

from __future__ import annotations

from starr.errors import InputError, LoadError, did_you_mean
from starr.model.families import bert, dream, llada, llada2, llada_moe, sdar
from starr.model.families.base import Family
from starr.model.files.config import Config

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        llada.FAMILY,
        dream.FAMILY,
        llada_moe.FAMILY,
        llada2.FAMILY,
        *sdar.FAMILIES,
        *bert.FAMILIES,
    )
}

# How the architectures begin of diffusion models that people will try, and why the one transformer does not serve them.
# LLaDA2.2 has LLaDA2's architecture name and is refused in ``llada2``.
REFUSED = {
    "DiffusionGemma": "DiffusionGemma: its noise is random tokens, so there is no mask token",
    "Lfm2": "LFM2.5: its convolution layers are not computed",
    "WeDLM": "WeDLM: its reordered causal attention is not computed",
    "LLaDAV": "LLaDA-V: images are not read",
    "LLaVA": "LLaDA-V: images are not read",
    "MMada": "MMaDA: images are not read",
    "MMaDA": "MMaDA: images are not read",
}
CAUSAL = ("Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "LlamaForCausalLM")


def find_family(config: Config) -> Family:
    """The family named by ``architectures``; any other is refused by name, with the reason where there is one."""
    listed = config.get("architectures")
    architecture = listed[0] if isinstance(listed, list) and listed else None
    for family in FAMILIES.values():
        if architecture in family.architectures:
            return family
    known = ", ".join(f"{family.architectures[0]} ({family.members})" for family in FAMILIES.values())
    if architecture is None:
        raise LoadError("config.json names no architecture.", hint=f"Set architectures to one of: {known}.")
    what = "".join(f" ({reason})" for start, reason in REFUSED.items() if str(architecture).startswith(start))
    if architecture in CAUSAL:
        raise LoadError(
            f"{architecture} is a model that writes from left to right, by its name.",
            hint="If it was trained to fill masks, use --family dream (shifted logits) or another one of its layers.",
            param="family",
        )
    raise LoadError(f"Architecture {architecture!r}{what} is not supported.", hint=f"Supported: {known}.")


def get_family(name: str) -> Family:
    """The family of this name, whatever a config.json says."""
    if name not in FAMILIES:
        raise InputError(f"Unknown family {name!r}.", hint=did_you_mean(name, FAMILIES), param="family")
    return FAMILIES[name]
