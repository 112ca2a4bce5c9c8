"""Checkpoint files to a network, tensor by tensor: each must map, once, with the right shape, or the load fails.

All headers are checked before any weight is read, so a wrong checkpoint fails at once. Files are mapped, not read, and
closed one after the other: peak memory is the model plus one shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from starr.errors import LoadError
from starr.model.config import read_json
from starr.model.layers import Shape
from starr.model.transformer import Transformer

INDEX = "model.safetensors.index.json"
FLOATS = ("F64", "F32", "F16", "BF16")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
CONVERT = "Convert it where you trust it: load it with torch.load and write it with safetensors.torch.save_file."


@dataclass(frozen=True, slots=True)
class Entry:
    """What a file's header says of one tensor."""

    file: Path
    shape: tuple[int, ...]
    dtype: str


def load_weights(
    folder: Path, shape: Shape, names: Mapping[str, str], device: torch.device, dtype: torch.dtype
) -> Transformer:
    """The network of ``folder``, frozen and in eval mode; ``names`` maps parameters to tensors in the checkpoint."""
    with torch.device("meta"):
        net = Transformer(shape)
    files = weight_files(folder)
    sizes = {names[name]: tuple(parameter.shape) for name, parameter in net.named_parameters()}
    check_entries(read_headers(files), sizes)
    parameter_of = {tensor: parameter for parameter, tensor in names.items()}
    for file in files:
        with open_weights(file) as shard:
            part = {parameter_of[key]: read_tensor(shard, key, device, dtype) for key in shard.keys()}  # noqa: SIM118
        net.load_state_dict(part, strict=False, assign=True)
    return net.eval().requires_grad_(False)


def read_tensor(shard: Any, key: str, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """One tensor in memory of its own: without the copy it would keep the whole file mapped."""
    tensor: torch.Tensor = shard.get_tensor(key)
    return tensor.to(device=device, dtype=dtype, copy=True)


def weight_files(folder: Path) -> list[Path]:
    """The checkpoint's files: those its index names, else model.safetensors, else every safetensors file there is."""
    if (folder / INDEX).exists():
        listed = read_json(folder / INDEX).get("weight_map")
        if not isinstance(listed, dict) or not all(Path(str(name)).name == name for name in listed.values()):
            raise LoadError(f"{folder / INDEX} has no weight_map of plain file names.")
        files = [folder / name for name in sorted(set(listed.values()))]
    elif (folder / "model.safetensors").exists():
        files = [folder / "model.safetensors"]
    else:
        files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise no_weights(folder)
    for file in files:
        if not file.exists():
            raise LoadError(f"Shard {file.name} is missing in {folder}.", hint="Copy or download it again.")
    return files


def no_weights(folder: Path) -> LoadError:
    """Why there is nothing to load: only pickles, which can run code when read, or no weights at all."""
    pickles = sorted(file.name for pattern in PICKLES for file in folder.glob(pattern))
    if pickles:
        return LoadError(f"{folder} holds a pickle checkpoint ({pickles[0]}); only safetensors are read.", hint=CONVERT)
    return LoadError(f"{folder} has no weights.", hint="It needs model.safetensors, or shards with their index.")


def open_weights(file: Path) -> Any:
    """A safetensors file, opened; its own complaints become one line."""
    try:
        return safe_open(str(file), framework="pt")
    except OSError as error:
        raise LoadError(f"{file} cannot be read: {error}.") from None
    except SafetensorError as error:
        with file.open("rb") as start:
            pointer = start.read(8) == b"version "
        hint = "It is a Git LFS pointer: run `git lfs pull`." if pointer else "Copy or download it again."
        raise LoadError(f"{file} is truncated or damaged ({error}).", hint=hint) from None


def read_headers(files: Iterable[Path]) -> dict[str, Entry]:
    """Every tensor the files hold; one that is there twice is refused."""
    found: dict[str, Entry] = {}
    for file in files:
        with open_weights(file) as shard:
            for key in shard.keys():  # noqa: SIM118
                if key in found:
                    raise LoadError(f"Tensor {key} is in both {found[key].file.name} and {file.name}.")
                view = shard.get_slice(key)
                found[key] = Entry(file, tuple(view.get_shape()), view.get_dtype())
    return found


def check_entries(found: Mapping[str, Entry], sizes: Mapping[str, tuple[int, ...]]) -> None:
    """Every tensor needed is there, none besides, each of the right shape and a floating type."""
    missing = [key for key in sizes if key not in found]
    if missing:
        raise LoadError(f"The checkpoint lacks {named(missing)}.", hint="Is config.json of the same model?")
    unknown = [key for key in found if key not in sizes]
    if unknown:
        raise LoadError(f"The model has no place for {named(unknown)}.", hint="Is config.json of the same model?")
    for key, entry in found.items():
        if entry.shape != sizes[key]:
            raise LoadError(f"Tensor {key} in {entry.file.name} has shape {entry.shape}, not {sizes[key]}.")
        if entry.dtype not in FLOATS:
            raise LoadError(
                f"Tensor {key} in {entry.file.name} is {entry.dtype}; only {', '.join(FLOATS)} are read.",
                hint="Quantised checkpoints are not supported.",
            )


def named(keys: list[str]) -> str:
    """The first key, and how many more."""
    return f"tensor {keys[0]}" + (f" and {len(keys) - 1} more" if len(keys) > 1 else "")
