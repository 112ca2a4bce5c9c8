"""One call from a name to a model that decodes: ``load`` finds the files, checks them and builds the network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from starr.errors import LoadError
from starr.model.config import read_json
from starr.model.device import choose_device, choose_dtype
from starr.model.families import Family, family_of
from starr.model.hub import locate
from starr.model.memory import keep_freed_memory
from starr.model.spec import ModelSpec
from starr.model.tokenizer import Tokenizer, read_tokenizer
from starr.model.transformer import Transformer
from starr.model.weights import load_weights


@dataclass(frozen=True, slots=True)
class Model:
    """A network with all that is needed to turn text into a canvas and back."""

    spec: ModelSpec
    net: Transformer
    tokenizer: Tokenizer
    name: str

    @property
    def device(self) -> torch.device:
        return self.net.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.net.embed.weight.dtype


def load(source: str | Path | None = None, *, device: str | None = None, dtype: str | None = None) -> Model:
    """The bundled model (None), a folder, or a hub id, in eval mode and without gradients.

    On CPU the dtype is float32 unless another is asked for; see ``starr.model.device``.
    """
    place = choose_device(device)
    if place.type == "cpu":
        keep_freed_memory()
    numbers = choose_dtype(dtype, place)
    folder, name = locate(source)
    spec, tokenizer, family = read_folder(folder, name)
    net = load_weights(folder, spec.shape, family.export_names(spec.shape), place, numbers)
    return Model(spec, net, tokenizer, name)


def read_folder(folder: Path, name: str) -> tuple[ModelSpec, Tokenizer, Family]:
    """What a checkpoint says of itself: all but its weights."""
    config = read_json(folder / "config.json")
    family = family_of(config)
    tokenizer = read_tokenizer(folder, family.template, family.template_tokens)
    spec = family.read_config(config, tokenizer.added, name)
    if tokenizer.size > spec.shape.vocab_size:
        raise LoadError(
            f"The tokenizer has ids up to {tokenizer.size - 1}, the model a vocabulary of {spec.shape.vocab_size}.",
            hint="Are both from the same model?",
        )
    return spec, tokenizer, family
