"""What a decoder must know of a model, whatever family it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from starr.model.layers import Shape


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One checkpoint in the project's own words; ``llada`` and ``dream`` translate config.json to and from it."""

    name: str
    family: str  # "llada" or "dream"
    shape: Shape
    mask_id: int
    eos_ids: tuple[int, ...]  # every token that ends a text: end-of-text first, then end-of-turn and padding
    bos_id: int | None
    pad_id: int
    shift: bool  # True (Dream): the logits of position i come from row i - 1, those of position 0 from row 0
    max_length: int
