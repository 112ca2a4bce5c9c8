"""Write a network as a LLaDA or Dream folder, with the released keys and tensor names, for ``load`` to read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import tokenizers
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from starr.errors import InputError, WorkError, did_you_mean
from starr.model.device import DTYPES
from starr.model.families import FAMILIES
from starr.model.hub import TOKENIZER_FILES
from starr.model.spec import ModelSpec
from starr.model.transformer import Transformer
from starr.model.weights import INDEX

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
    Each file is written beside its place and moved there whole, so that a failure leaves the old one.
    """
    if dtype not in DTYPES:
        raise InputError(f"Unknown dtype {dtype!r}.", hint=did_you_mean(dtype, DTYPES), param="dtype")
    target = Path(folder)
    family = FAMILIES[spec.family]
    config = {**family.write_config(spec), "torch_dtype": dtype}
    write_json(target / "config.json", config)
    if tokenizer is not None:
        write_tokenizer(target, tokenizer)
    tensors = {name: parameter.detach() for name, parameter in net.named_parameters()}
    write_weights(target, tensors, family.export_names(spec.shape), dtype, shard_bytes)


def write_weights(
    folder: Path, tensors: Mapping[str, Tensor], names: Mapping[str, str], dtype: str, shard_bytes: int
) -> None:
    """One model.safetensors, or numbered shards and their index; one shard at a time is converted."""
    size = DTYPES[dtype].itemsize
    groups = list(shards({name: tensor.numel() * size for name, tensor in tensors.items()}, shard_bytes))
    weight_map: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        file = f"model-{number:05d}-of-{len(groups):05d}.safetensors" if len(groups) > 1 else "model.safetensors"
        part = {names[name]: tensors[name].to("cpu", DTYPES[dtype]).contiguous() for name in group}
        write_whole(folder / file, partial(save_file, part, metadata={"format": "pt"}))
        weight_map |= dict.fromkeys(part, file)
    if len(groups) > 1:
        total = sum(tensor.numel() for tensor in tensors.values()) * size
        write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": weight_map})
    remove_stale(folder, set(weight_map.values()))


def remove_stale(folder: Path, current: set[str]) -> None:
    """Drop an earlier export's weights, which the loader might otherwise take for this one's."""
    for file in folder.glob("model*.safetensors"):
        if file.name not in current:
            file.unlink()
    if len(current) == 1:
        (folder / INDEX).unlink(missing_ok=True)


def shards(sizes: Mapping[str, int], limit: int) -> Iterator[list[str]]:
    """Names in order, cut so that a group stays within ``limit`` bytes (a larger single one stands alone)."""
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
    """The tokenizer's files, copied or written."""
    if isinstance(tokenizer, tokenizers.Tokenizer):
        write_text(folder / "tokenizer.json", tokenizer.to_str(pretty=False))
        return
    source = Path(tokenizer)
    found = [source / name for name in TOKENIZER_FILES if (source / name).exists()] if source.is_dir() else [source]
    for file in found:
        place = folder / (file.name if source.is_dir() else "tokenizer.json")
        write_whole(place, partial(shutil.copyfile, file))


def write_json(path: Path, data: Mapping[str, object]) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file beside ``path``, then move it there; a full disk is one line and leaves no rest."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        os.replace(part, path)
    except (OSError, SafetensorError) as error:
        with suppress(OSError):
            part.unlink()
        raise WorkError(f"{path} could not be written: {error}.", hint="Is the disk full?") from None
