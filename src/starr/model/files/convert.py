"""Write a network as a folder of its family, with the released keys and tensor names, for ``load`` to read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import tokenizers
import torch
from safetensors.torch import save_file
from torch import Tensor

from starr.errors import InputError, did_you_mean
from starr.model.device import DTYPES
from starr.model.families import FAMILIES
from starr.model.families.names import Part
from starr.model.files.hub import TOKENIZER_FILES
from starr.model.files.output import write_text, write_whole
from starr.model.files.weights import INDEX
from starr.model.network.transformer import Transformer
from starr.model.spec import ModelSpec

SHARD_BYTES = 4 * 10**9


def save(
    net: Transformer,
    spec: ModelSpec,
    folder: str | Path,
    dtype: str = "float32",
    *,
    tokenizer: tokenizers.Tokenizer | str | Path | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write config.json, the weights as ``dtype`` (sharded above ``shard_bytes``) and the tokenizer's files.

    ``tokenizer`` is an object of the tokenizers library, a tokenizer.json, or a folder to copy tokenizer files from.
    A failure leaves the old files.
    """
    if dtype not in DTYPES:
        raise InputError(f"Unknown dtype {dtype!r}.", hint=did_you_mean(dtype, DTYPES), param="dtype")
    target = Path(folder)
    family = FAMILIES[spec.family]
    config = {**family.write_config(spec), "torch_dtype": dtype}
    write_json(target / "config.json", config)
    if tokenizer is not None:
        write_tokenizer(target, tokenizer)
    write_weights(target, net, family.names.parts(spec.shape), dtype, shard_bytes)


def write_weights(folder: Path, net: Transformer, parts: list[Part], dtype: str, shard_bytes: int) -> None:
    """Write one model.safetensors, or numbered shards and their index; convert one shard at a time."""
    of: dict[str, list[Part]] = {}
    for part in parts:
        of.setdefault(part.tensor, []).append(part)
    wide = net.wide
    kinds = {name: torch.float32 if some[0].parameter in wide else DTYPES[dtype] for name, some in of.items()}
    counts = {name: sum(get_parameter(net, part).numel() for part in some) for name, some in of.items()}
    sizes = {name: count * kinds[name].itemsize for name, count in counts.items()}
    groups = list(split_shards(sizes, shard_bytes))
    weight_map: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        file = f"model-{number:05d}-of-{len(groups):05d}.safetensors" if len(groups) > 1 else "model.safetensors"
        chosen = {name: build_tensor(net, of[name], kinds[name]) for name in group}
        write_whole(folder / file, partial(save_file, chosen, metadata={"format": "pt"}))
        weight_map |= dict.fromkeys(chosen, file)
    if len(groups) > 1:
        write_json(folder / INDEX, {"metadata": {"total_size": sum(sizes.values())}, "weight_map": weight_map})
    remove_stale(folder, set(weight_map.values()))


def get_parameter(net: Transformer, part: Part) -> Tensor:
    """Return the parameter, or the part of it, that a tensor of the checkpoint holds."""
    parameter = net.get_parameter(part.parameter).detach()
    return parameter if part.expert is None else parameter[part.expert]


def build_tensor(net: Transformer, parts: list[Part], dtype: torch.dtype) -> Tensor:
    """Build one tensor of the checkpoint; the rows of a fused one are joined in their order."""
    rows = [get_parameter(net, part) for part in parts]
    tensor = rows[0] if len(rows) == 1 else torch.cat(rows)
    return tensor.to("cpu", dtype).contiguous()


def remove_stale(folder: Path, current: set[str]) -> None:
    """Remove the weights of an earlier export, which the loader might read."""
    for file in folder.glob("model*.safetensors"):
        if file.name not in current:
            file.unlink()
    if len(current) == 1:
        (folder / INDEX).unlink(missing_ok=True)


def split_shards(sizes: Mapping[str, int], limit: int) -> Iterator[list[str]]:
    """Split names into groups of at most ``limit`` bytes, in order; a larger tensor is a group of its own."""
    group: list[str] = []
    filled = 0
    for name, size in sizes.items():
        if group and filled + size > limit:
            yield group
            group, filled = [], 0
        group.append(name)
        filled += size
    yield group


def write_tokenizer(folder: Path, tokenizer: tokenizers.Tokenizer | str | Path) -> None:
    """Copy or write the tokenizer's files."""
    if isinstance(tokenizer, tokenizers.Tokenizer):
        write_text(folder / "tokenizer.json", tokenizer.to_str(pretty=False))
        return
    source = Path(tokenizer)
    found = [source / name for name in TOKENIZER_FILES if (source / name).exists()] if source.is_dir() else [source]
    for file in found:
        target = folder / (file.name if source.is_dir() else "tokenizer.json")
        write_whole(target, partial(shutil.copyfile, file))


def write_json(path: Path, data: Mapping[str, object]) -> None:
    """Write a file of JSON."""
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
