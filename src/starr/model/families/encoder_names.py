"""Tensor names of encoders: tables turned into the places of a checkpoint's tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from starr.model.families.names import Part
from starr.model.network.shape import Shape

OLD = {".weight": ".gamma", ".bias": ".beta"}  # of a norm, in checkpoints of 2019


@dataclass(frozen=True, slots=True)
class EncoderNames:
    """One family's names, without ``.weight`` and ``.bias``; ``layer`` has a place for the layer's number.

    ``top`` and ``in_layer`` map our modules to theirs. ``fused`` names the tensors that hold several of our matrices,
    one after the other.
    """

    top: Mapping[str, str]
    layer: str
    in_layer: Mapping[str, str]
    head_bias: str
    decoder: str  # repeats the embedding and the head's bias
    fused: Mapping[str, tuple[str, ...]]
    spare: tuple[str, ...]  # how tensors begin that have no part in predicting tokens

    @property
    def head(self) -> str:
        """See ``TensorNames``: none, a decoder that is stored repeats the embedding."""
        return ""

    def parts(self, shape: Shape, found: Collection[str] = ()) -> list[Part]:
        """See ``TensorNames``."""
        made = [Part(self.head_bias, "head_bias"), *self.tops(shape)]
        kind = shape.encoder
        for index in range((kind.groups if kind else 0) or shape.layers):
            made += self.within(shape, index)
        return [Part(choose_name(part.tensor, found), part.parameter, rows=part.rows) for part in made]

    def tops(self, shape: Shape) -> Iterator[Part]:
        """Those outside the layers."""
        for ours, theirs in self.top.items():
            for ending in list_endings(ours, shape):
                yield Part(theirs + ending, ours + ending)

    def within(self, shape: Shape, index: int) -> Iterator[Part]:
        """Those of one layer."""
        ours, theirs = f"layers.{index}", self.layer.format(index)
        for own, other in self.in_layer.items():
            if own == "input_norm" and index == 0:
                continue
            for ending in list_endings(own, shape):
                yield Part(f"{theirs}.{other}{ending}", f"{ours}.{own}{ending}")
        sizes = {"attention": shape.width, "mlp": shape.mlp_width}
        for other, owns in self.fused.items():
            for place, own in enumerate(owns):
                size = sizes[own.partition(".")[0]]
                rows = (place * size, (place + 1) * size)
                yield Part(f"{theirs}.{other}.weight", f"{ours}.{own}.weight", rows=rows)

    def copies(self, shape: Shape) -> Mapping[str, str]:
        """See ``TensorNames``."""
        copies = {f"{self.decoder}.weight": "embed.weight", f"{self.decoder}.bias": "head_bias"}
        return {tensor: parameter for tensor, parameter in copies.items() if tensor != self.head_bias}

    def unused(self, tensor: str) -> bool:
        """See ``TensorNames``."""
        return tensor.startswith(self.spare)


def list_endings(ours: str, shape: Shape) -> tuple[str, ...]:
    """Which parameters one of our modules has."""
    table = ours in ("embed", "position", "token_type")
    return (".weight",) if table or (shape.encoder and shape.encoder.modern) else (".weight", ".bias")


def choose_name(tensor: str, found: Collection[str]) -> str:
    """The tensor's name, or its old one where a checkpoint has that."""
    for new, old in OLD.items():
        renamed = tensor.removesuffix(new) + old
        if tensor.endswith(new) and tensor not in found and renamed in found:
            return renamed
    return tensor
