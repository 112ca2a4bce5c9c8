"""Checkpoint files to a network, tensor by tensor: each must map, once, with the right shape, or the load fails.

All headers are checked before any weight is read, so a wrong checkpoint fails at once. Files are mapped, not read, and
closed after some tensors: peak memory is the model plus one large tensor, or some small ones.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from starr.errors import LoadError
from starr.model.families.names import Names, Part, TensorNames
from starr.model.files.config import read_json
from starr.model.network.encoder import make_network
from starr.model.network.shape import Shape
from starr.model.network.transformer import Transformer

Progress = Callable[[int, int], None]  # tensors read, of how many
INDEX = "model.safetensors.index.json"
FLOATS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}  # bytes
HEADER_BYTES = 8 << 20  # of one file: some 50,000 tensors
AGAIN = "Copy or download it again."
MAPPED = 64 << 20  # bytes that are read before a file is closed and opened again
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
CONVERT = "Convert it: `starr models convert FOLDER --out NEW`."


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """What a file's header says about one tensor."""

    file: Path
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Its bytes."""
        return math.prod(self.shape) * FLOATS[self.dtype]


def load_weights(
    folder: Path,
    shape: Shape,
    names: TensorNames,
    device: torch.device,
    dtype: torch.dtype,
    architecture: str = "the config",
    progress: Progress | None = None,
) -> Transformer:
    """Build the network of ``folder``, frozen and in eval mode; ``names`` are the checkpoint's tensor names."""
    with torch.device("meta"):
        net = make_network(shape)
    stored = read_headers(weight_files(folder))
    found = {key: entry for key, entry in stored.items() if not names.unused(key)}
    if isinstance(names, Names):
        check_kind(found, shape, names, architecture)
    parts = names.parts(shape, found)
    copies = {tensor: name for tensor, name in names.copies(shape).items() if tensor in found}
    sizes = list_shapes(net, parts)
    check_entries(found, sizes | {tensor: tuple(net.get_parameter(name).shape) for tensor, name in copies.items()})
    filler, done = Filler(net, parts, device, dtype), 0
    for keys in group_by_file(found):
        with open_weights(found[keys[0]].file) as shard:
            for key in keys:
                filler.take(key, shard)
                done += 1
                if progress is not None:
                    progress(done, len(found))
    for tensor, name in copies.items():
        check_copy(found[tensor], tensor, net.get_parameter(name))
    return net.eval().requires_grad_(False)


def group_by_file(found: Mapping[str, StoredTensor]) -> Iterator[list[str]]:
    """Group tensors of one file, in order, up to MAPPED bytes."""
    run: list[str] = []
    held = 0
    for key, entry in found.items():
        if run and (entry.file != found[run[0]].file or held + entry.size > MAPPED):
            yield run
            run, held = [], 0
        run.append(key)
        held += entry.size
    if run:
        yield run


class Filler:
    """Puts tensors where they belong, one at a time: whole parameters, stacked experts, rows of fused projections."""

    def __init__(self, net: Transformer, parts: list[Part], device: torch.device, dtype: torch.dtype) -> None:
        self.net, self.device, self.dtype = net, device, dtype
        self.wide = net.wide
        self.of: dict[str, list[Part]] = {}
        for part in parts:
            self.of.setdefault(part.tensor, []).append(part)

    def take(self, key: str, shard: Any) -> None:
        """Read the tensor ``key`` and fill what it holds; a head that is stored although it is tied is left out."""
        for part in self.of.get(key, []):
            dtype = torch.float32 if part.parameter in self.wide else self.dtype
            tensor = shard.get_slice(key)[slice(*part.rows)] if part.rows else shard.get_tensor(key)
            if part.expert is None:  # a copy: otherwise it would keep the whole file mapped
                tensor = tensor.to(device=self.device, dtype=dtype, copy=True)
                self.net.load_state_dict({part.parameter: tensor}, strict=False, assign=True)
                continue
            stack = self.net.get_parameter(part.parameter)
            if stack.is_meta:
                made = torch.empty(stack.shape, device=self.device, dtype=dtype)
                self.net.load_state_dict({part.parameter: made}, strict=False, assign=True)
                stack = self.net.get_parameter(part.parameter)
            stack.data[part.expert] = tensor.to(device=self.device, dtype=dtype)


def list_shapes(net: Transformer, parts: list[Part]) -> dict[str, tuple[int, ...]]:
    """List the shape that each tensor of the checkpoint must have."""
    sizes: dict[str, tuple[int, ...]] = {}
    for part in parts:
        size = tuple(net.get_parameter(part.parameter).shape)
        if part.expert is not None:
            size = size[1:]
        sizes[part.tensor] = (part.rows[1], *size[1:]) if part.rows else size
    return sizes


def check_kind(found: Mapping[str, StoredTensor], shape: Shape, names: Names, architecture: str) -> None:
    """Refuse weights whose kind of layer contradicts the architecture that config.json names."""
    kinds = {
        "q/k norms": (shape.qk_norm, ("q_norm.weight", "query_layernorm.weight")),
        "q/k/v biases": (shape.qkv_bias, ("q_proj.bias", "query_key_value.bias")),
        "experts": (shape.routing is not None, (f"{names.router or 'mlp.gate'}.weight",)),
    }
    for what, (expected, endings) in kinds.items():
        example = next((key for key in found if key.endswith(endings)), None)
        if (example is not None) != expected:
            here = f"the weights have ({example})" if example else "the weights lack"
            raise LoadError(
                f"{architecture} has {'' if expected else 'no '}{what}, {'which ' if expected else 'but '}{here}.",
                hint="config.json names a different architecture from that of the weights.",
            )


def check_copy(entry: StoredTensor, key: str, own: torch.Tensor) -> None:
    """Check that a stored copy of a tied parameter is equal to the parameter."""
    with open_weights(entry.file) as shard:
        copy = shard.get_tensor(key).to(device=own.device, dtype=own.dtype)
    if not torch.equal(copy, own):
        raise LoadError(
            f"config.json says tie_word_embeddings, but {key} differs from the embedding, or its bias from the head's.",
            hint="Set tie_word_embeddings to false if the head is its own.",
        )


def weight_files(folder: Path) -> list[Path]:
    """List the checkpoint's files: those of its index, else model.safetensors, else every safetensors file."""
    if (folder / INDEX).exists():
        files = list_shards(folder / INDEX)
    elif (folder / "model.safetensors").exists():
        files = [folder / "model.safetensors"]
    else:
        files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise explain_missing(folder)
    for file in files:
        if file.exists() and not file.is_file():
            raise LoadError(f"{file} is not a regular file.")
        if not file.exists():
            raise LoadError(f"Shard {file.name} is missing in {folder}.", hint=AGAIN)
    return files


def list_shards(index: Path) -> list[Path]:
    """List the files that an index names."""
    listed = read_json(index).get("weight_map")
    if not isinstance(listed, dict) or not all(Path(str(name)).name == name for name in listed.values()):
        raise LoadError(f"{index} has no weight_map of plain file names.")
    return [index.with_name(name) for name in sorted(set(listed.values()))]


def explain_missing(folder: Path) -> LoadError:
    """Say why there is nothing to load: only pickles, which can run code when read, or no weights at all."""
    pickles = sorted(file.name for pattern in PICKLES for file in folder.glob(pattern))
    if pickles:
        return LoadError(f"{folder} holds a pickle checkpoint ({pickles[0]}); only safetensors are read.", hint=CONVERT)
    return LoadError(f"{folder} has no weights.", hint="It needs model.safetensors, or shards with their index.")


def open_weights(file: Path) -> Any:
    """Open a safetensors file; its errors become one line."""
    try:
        return safe_open(str(file), framework="pt")
    except (OSError, RuntimeError) as error:  # torch raises the second where a file cannot be mapped
        raise LoadError(f"{file} cannot be read: {error}.") from None
    except SafetensorError as error:
        raise LoadError(f"{file} is truncated or damaged ({error}).", hint=AGAIN) from None


def read_headers(files: Iterable[Path]) -> dict[str, StoredTensor]:
    """Read the headers of files; a tensor in two files is refused."""
    found: dict[str, StoredTensor] = {}
    for file in files:
        for key, entry in read_header(file).items():
            if key in found:
                raise LoadError(f"Tensor {key} is in both {found[key].file.name} and {file.name}.")
            found[key] = entry
    return found


def read_header(file: Path) -> dict[str, StoredTensor]:
    """Read the header of one file without mapping the file, so that memory is checked before the weights are read."""
    try:
        with file.open("rb") as data:
            first = data.read(8)
            length, size = int.from_bytes(first, "little"), file.stat().st_size
            if first == b"version ":
                raise LoadError(f"{file} is a Git LFS pointer.", hint="Run `git lfs pull`.")
            if len(first) < 8 or length > size - 8:
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            if length > HEADER_BYTES:
                raise LoadError(f"{file} has a header of {length} bytes, more than {HEADER_BYTES}.")
            entries = json.loads(data.read(length))
        entries.pop("__metadata__", None)
        found = {key: StoredTensor(file, tuple(e["shape"]), str(e["dtype"])) for key, e in entries.items()}
        if not all(type(n) is int and n >= 0 for entry in found.values() for n in entry.shape):
            raise ValueError("a shape that is none")
        end = max((e["data_offsets"][1] for e in entries.values()), default=0)
        if end != size - 8 - length:
            raise ValueError(f"{end} bytes of tensors in a file of {size}")
    except OSError as error:
        raise LoadError(f"{file} cannot be read: {error}.") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        why = str(error).partition("\n")[0][:80]
        raise LoadError(f"{file} is truncated or damaged ({why}).", hint=AGAIN) from None
    return found


def check_entries(found: Mapping[str, StoredTensor], sizes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that the needed tensors are there and no others, each of the right shape and a floating type."""
    missing = [key for key in sizes if key not in found]
    if missing:
        raise LoadError(f"The checkpoint lacks {name_first(missing)}.", hint="Is config.json of the same model?")
    unknown = [key for key in found if key not in sizes]
    if unknown:
        raise LoadError(f"The model has no place for {name_first(unknown)}.", hint="Is config.json of the same model?")
    for key, entry in found.items():
        if entry.shape != sizes[key]:
            raise LoadError(f"Tensor {key} in {entry.file.name} has shape {entry.shape}, not {sizes[key]}.")
        if entry.dtype not in FLOATS:
            raise LoadError(
                f"Tensor {key} in {entry.file.name} is {entry.dtype}; only {', '.join(FLOATS)} are read.",
                hint="Quantised checkpoints are not supported.",
            )


def name_first(keys: list[str]) -> str:
    """Name the first key, and say how many more there are."""
    return f"tensor {keys[0]}" + (f" and {len(keys) - 1} more" if len(keys) > 1 else "")
