"""Write a network as a folder of its family, with the released keys and tensor names, for ``load`` to read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import tokenizers
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from starr.errors import InputError, WorkError, did_you_mean
from starr.model.device import DTYPES
from starr.model.families import FAMILIES
from starr.model.families.names import Part
from starr.model.files.hub import TOKENIZER_FILES
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
    write_weights(target, net, family.names.parts(spec.shape), dtype, shard_bytes)


def write_weights(folder: Path, net: Transformer, parts: list[Part], dtype: str, shard_bytes: int) -> None:
    """One model.safetensors, or numbered shards and their index; one shard at a time is converted."""
    of: dict[str, list[Part]] = {}
    for part in parts:
        of.setdefault(part.tensor, []).append(part)
    wide = net.wide
    kinds = {name: torch.float32 if some[0].parameter in wide else DTYPES[dtype] for name, some in of.items()}
    sizes = {name: sum(held(net, part).numel() for part in some) * kinds[name].itemsize for name, some in of.items()}
    groups = list(shards(sizes, shard_bytes))
    weight_map: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        file = f"model-{number:05d}-of-{len(groups):05d}.safetensors" if len(groups) > 1 else "model.safetensors"
        chosen = {name: stored(net, of[name], kinds[name]) for name in group}
        write_whole(folder / file, partial(save_file, chosen, metadata={"format": "pt"}))
        weight_map |= dict.fromkeys(chosen, file)
    if len(groups) > 1:
        write_json(folder / INDEX, {"metadata": {"total_size": sum(sizes.values())}, "weight_map": weight_map})
    remove_stale(folder, set(weight_map.values()))


def held(net: Transformer, part: Part) -> Tensor:
    """The parameter, or the part of it, that a tensor of the checkpoint holds."""
    parameter = net.get_parameter(part.parameter).detach()
    return parameter if part.expert is None else parameter[part.expert]


def stored(net: Transformer, parts: list[Part], dtype: torch.dtype) -> Tensor:
    """One tensor of the checkpoint; the rows of a fused one are joined in their order."""
    rows = [held(net, part) for part in parts]
    tensor = rows[0] if len(rows) == 1 else torch.cat(rows)
    return tensor.to("cpu", dtype).contiguous()


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
    """Write a file of JSON whole or not at all."""
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file of text whole or not at all."""
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file beside ``path``, then move it there; a full disk is an error and leaves no file."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        os.replace(part, path)
    except (OSError, SafetensorError) as error:
        with suppress(OSError):
            part.unlink()
        raise WorkError(f"{path} could not be written: {error}.", hint="Is the disk full?") from None
