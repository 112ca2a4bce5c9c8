"""One call from a name to a model that decodes: ``load`` finds the files, checks them and builds the network."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from starr.errors import InputError, LoadError, did_you_mean
from starr.model.device import choose_device, choose_dtype, keep_freed_memory, read_dtype
from starr.model.families import find_family, get_family
from starr.model.families.base import Family
from starr.model.files.adapter import find_adapter, merge
from starr.model.files.config import Config, read_json
from starr.model.files.hub import locate, shared_folder
from starr.model.files.memory import Room, check_memory
from starr.model.files.weights import Progress, load_weights, read_headers, weight_files
from starr.model.known import Known, read_known
from starr.model.network.transformer import Transformer
from starr.model.spec import ModelSpec
from starr.model.text.tokenizer import Tokenizer, read_tokenizer
from starr.model.threads import fix_threads, measure_useful_threads
from starr.options import PYTHON, ours

Keywords = ParamSpec("Keywords")
Loaded = TypeVar("Loaded")

SAMPLED = 4096  # values of a tensor that are tested, from its first to its last


def answer_foreign(work: Callable[Keywords, Loaded]) -> Callable[Keywords, Loaded]:
    """Make an unknown keyword one clear error, with our name for it where another library has it."""
    known = list(inspect.signature(work).parameters)

    @functools.wraps(work)
    def call(*given: Keywords.args, **named: Keywords.kwargs) -> Loaded:
        for name in named:
            if name not in known:
                hint = ours(name, PYTHON) or did_you_mean(name, known)
                raise InputError(f"Unknown option {name!r} of starr.load.", hint=hint, param=name)
        return work(*given, **named)

    return call


@dataclass(frozen=True, slots=True)
class Model:
    """A network with everything needed to turn text into a canvas and back."""

    spec: ModelSpec
    net: Transformer
    tokenizer: Tokenizer
    name: str
    known: Known | None = None
    threads: int = 0  # that a forward can use on this CPU; 0: not measured

    def __repr__(self) -> str:
        size = sum(weight.numel() for weight in self.net.parameters())
        numbers = str(self.dtype).removeprefix("torch.")
        return f"<Model {self.name}: {self.spec.family}, {size:,} parameters, {numbers} on {self.device}>"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.net.embed.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return self.net.embed.weight.dtype


@answer_foreign
def load(
    source: str | Path | None = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    threads: int | None = None,
    family: str | None = None,
    attention: str | None = None,
    room: Room | None = None,
    progress: Progress | None = None,
) -> Model:
    """Load the bundled model (None), a folder, or a hub id, in eval mode and without gradients.

    On CPU the default dtype is the fastest that is safe; see ``starr.model.device``.
    ``room`` is the forward that must fit into memory with the weights; ``progress`` is called after every tensor.
    ``threads`` fixes the number of CPU threads for this process; by default it follows the machine.
    ``family`` reads a checkpoint as one of that family, whatever its config.json names; ``attention`` is "full" or
    "blocks:n", for checkpoints that do not say it. A folder with a LoRA adapter alone is merged into its base model.
    """
    target = choose_device(device)
    if threads is not None:
        fix_threads(threads)
    if target.type == "cpu":
        keep_freed_memory()
    read_dtype(dtype)  # a wrong name is refused before anything is fetched
    folder, name = locate(source)
    adapter = find_adapter(folder)
    if adapter is not None:
        folder, _ = locate(adapter.base)
    spec, tokenizer, kind = read_folder(folder, name, family, attention)
    numbers = choose_dtype(dtype, target, spec.shape.width)
    check_memory(folder, spec.shape, target, numbers, room)
    net = load_weights(folder, spec.shape, kind.names, target, numbers, kind.architectures[0], progress)
    if adapter is not None:
        merge(net, adapter, kind.names, spec.shape)
    check_finite(net)
    return Model(spec, net, tokenizer, name, read_known(shared_folder(folder)), measure_useful_threads(net))


def read_folder(
    folder: Path, name: str, family_name: str | None = None, attention: str | None = None
) -> tuple[ModelSpec, Tokenizer, Family]:
    """Read everything of a checkpoint but its weights."""
    config: Config = read_json(folder / "config.json")
    family = find_family(config) if family_name is None else get_family(family_name)
    if family_name is not None:
        config = {**config, "architectures": [family.architectures[0]]}
    if attention is not None:
        config = {**config, "block_size": read_attention(attention, family)}
    chats = not family.template_names or name.rpartition("/")[2] in family.template_names
    template = family.template if chats else None
    tokenizer = read_tokenizer(folder, template, family.template_tokens, family.template_variables)
    spec = family.read_config(completed(config, family, tokenizer, folder), tokenizer.added, name)
    if tokenizer.size > spec.shape.vocab_size:
        raise LoadError(
            f"The tokenizer has ids up to {tokenizer.size - 1}, the model a vocabulary of {spec.shape.vocab_size}.",
            hint="Are both from the same model?",
        )
    check_mask(spec, tokenizer)
    check_template(tokenizer, family)
    return spec, tokenizer, family


def completed(config: Config, family: Family, tokenizer: Tokenizer, folder: Path) -> Config:
    """The config with what it leaves out: the mask that the tokenizer names; whether the weights have a head."""
    found = dict(config)
    if config.get("mask_token_id") is None and tokenizer.mask_id is not None:
        found["mask_token_id"] = tokenizer.mask_id
    if config.get("tie_word_embeddings", config.get("weight_tying")) is None:
        tied = family.names.head not in read_headers(weight_files(folder))
        found |= {"tie_word_embeddings": tied, "weight_tying": tied}
    return found


def read_attention(text: str, family: Family) -> int:
    """Positions of a block, 0 for full attention, from ``full`` or ``blocks:n``."""
    kind, _, size = text.partition(":")
    if not family.any_attention:
        raise InputError(
            f"The attention of the family {family.name} is known.", hint="Leave it out.", param="attention"
        )
    if text == "full":
        return 0
    if kind == "blocks" and size.isdecimal() and int(size) > 0:
        return int(size)
    raise InputError(f"attention is full or blocks:n, got {text!r}.", hint="For example blocks:32.", param="attention")


def check_mask(spec: ModelSpec, tokenizer: Tokenizer) -> None:
    """Raise if the mask is an end of text, or differs from the mask that the tokenizer names."""
    if spec.mask_id in spec.eos_ids:
        raise LoadError(f"config.json: the mask id {spec.mask_id} is also an end of text.")
    named = tokenizer.mask_id
    if named is not None and named != spec.mask_id:
        raise LoadError(f"config.json: the mask id is {spec.mask_id}, the tokenizer's mask token has {named}.")


def check_template(tokenizer: Tokenizer, family: Family) -> None:
    """Raise unless a chat ends with the tag after which the model answers."""
    if not (family.reply_tag and tokenizer.has_chat):
        return
    shown = tokenizer.decode(tokenizer.chat([{"role": "user", "content": "Hi"}]), skip_special=False)
    if not shown.endswith(family.reply_tag):
        raise LoadError(
            f"The chat template of {family.architectures[0]} must end with {family.reply_tag}, not {shown[-24:]!r}.",
            hint="Use the template that the model's repository ships.",
        )


def sample_values(weight: Tensor, count: int) -> Tensor:
    """Take up to ``count`` values of a tensor, evenly spread from its first to its last."""
    flat = weight.detach().flatten()
    index = torch.linspace(0, len(flat) - 1, min(count, len(flat)), dtype=torch.float64).round().long()
    return flat[index.to(flat.device)]


def check_finite(net: nn.Module) -> None:
    """Raise LoadError with the name of a weight whose sampled values are not all finite."""
    for name, weight in net.named_parameters():
        if not bool(sample_values(weight, SAMPLED).isfinite().all()):
            hint = "Copy or download it again, or load it as float32."
            raise LoadError(f"Weight {name} holds values that are not finite numbers.", hint=hint)
