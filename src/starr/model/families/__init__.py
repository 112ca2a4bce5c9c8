"""Which family reads a config.json: decided by its ``architectures``, because model_type is shared by unlike models."""

from __future__ import annotations

from starr.errors import LoadError
from starr.model.families import bert, dream, fast_dllm_v2, illada, llada, llada2, llada_moe, sdar
from starr.model.families.base import Family
from starr.model.files.config import Config

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        llada.FAMILY,
        dream.FAMILY,
        llada_moe.FAMILY,
        illada.FAMILY,
        llada2.FAMILY,
        *sdar.FAMILIES,
        fast_dllm_v2.FAMILY,
        *bert.FAMILIES,
    )
}

# How the architectures begin of diffusion models that people will try, and why the one transformer does not serve them.
# LLaDA2.2 has LLaDA2's architecture name and is refused in ``llada2``.
REFUSED = {
    "Nemotron": "Nemotron-Labs-Diffusion: YaRN positions are not computed",
    "DiffusionGemma": "DiffusionGemma: its noise is random tokens, so there is no mask token",
    "Lfm2": "LFM2.5: its convolution layers are not computed",
    "RND1": "RND1: whether its logits are shifted is not known",
}


def family_of(config: Config) -> Family:
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
    raise LoadError(f"Architecture {architecture!r}{what} is not supported.", hint=f"Supported: {known}.")
