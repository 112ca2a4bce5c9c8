"""``starr models``: which models there are, and what a checkpoint says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import Attention, Common, FamilyName, Json
from starr.cli.report import dump, table
from starr.cli.verb import family, verb

if TYPE_CHECKING:
    from torch import nn

    from starr.model.files.weights import StoredTensor
    from starr.model.network.shape import Shape
    from starr.model.spec import ModelSpec
    from starr.model.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class ListModelsOptions(Common):
    """The flags of ``starr models``."""

    json: Json = False


@dataclass(frozen=True, kw_only=True)
class ShowModelOptions(Common):
    """The flags of ``starr models show``."""

    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="bundled, bundled-dream, bundled-blocks, a folder, or a hub id."),
    ]
    family: FamilyName = None
    attention: Attention = None
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class DownloadOptions(Common):
    """The flags of ``starr models download``."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="A hub id, as `starr models` lists them.")]
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(Common):
    """The flags of ``starr models convert``."""

    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder with pytorch_model.bin, or shards of it.")]
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write.")]
    json: Json = False


def convert_one(options: ConvertOptions) -> None:
    """Write a folder of PyTorch's .bin files as safetensors, read in a child process with limits."""
    from starr.model.files.unpickle import convert_folder

    made = convert_folder(options.folder, options.out)
    print(dump({"files": [str(path) for path in made]}) if options.json else "\n".join(map(str, made)))


def add(app: typer.Typer) -> None:
    """Add ``starr models`` and its verbs."""
    models = family(app, "models", "List models, or show what a checkpoint holds.", ListModelsOptions, show_all)
    verb(models, "list", ListModelsOptions, show_all)
    verb(models, "show", ShowModelOptions, show_one)
    verb(models, "download", DownloadOptions, download_one)
    verb(models, "convert", ConvertOptions, convert_one)


def download_one(options: DownloadOptions) -> None:
    """Fetch a model from the hub into its cache, nothing that runs, and print its folder."""
    from starr.model.files.hub import locate

    folder, name = locate(options.name)
    print(dump({"name": name, "folder": str(folder)}) if options.json else folder)


def show_all(options: ListModelsOptions) -> None:
    """List models of the supported families."""
    from starr.model.released import RELEASED

    rows = [{"name": name, "family": kind, "here": is_here(name), "about": about} for name, kind, about in RELEASED]
    if options.json:
        print(dump(rows))
    else:
        cells = [(row["name"], row["family"], said(row["here"]), row["about"]) for row in rows]
        print(table(("model", "family", "here", "about"), cells))


def said(value: Any) -> str:
    """A value as a person would write it."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def is_here(name: str) -> bool:
    """Whether the model's files are in the package or in the hub's cache."""
    from starr.model.files.hub import BUNDLED_NAMES, bundled_folder

    if name in BUNDLED_NAMES:
        return (bundled_folder(name) / "config.json").exists()
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json"), str)


def show_one(options: ShowModelOptions) -> None:
    """Show what a checkpoint says about itself."""
    from starr.model.load import read_folder

    folder, name = find(options.name)
    spec, tokenizer, _ = read_folder(folder, name, options.family, options.attention)
    facts = describe(spec, tokenizer) | {"needs": describe_needs(folder, spec.shape)}
    size = size_of(folder)
    files = f"{size / 1e6:,.1f} MB" if size else f"no weights: `starr models download {name}` fetches them"
    facts |= {"files": files, "folder": str(folder)}
    if options.json:
        print(dump(facts))
    else:
        width = max(map(len, facts))
        print("\n".join(f"{key:<{width}}  {said(value)}" for key, value in facts.items()))


def describe_needs(folder: Path, shape: Shape) -> str:
    """Memory by dtype: the weights alone, and with the largest tensor and one forward; whether that fits here."""
    from starr.model.device import choose_device
    from starr.model.files.memory import DTYPES, POSITIONS, available, gigabytes, need

    found, free = list_tensors(folder, shape), available(choose_device(None))
    parts = []
    for name, size in DTYPES.items():
        asked = need(found, shape, size)
        verdict = "" if free is None else ", fits" if asked.total <= free else ", does not fit"
        parts.append(f"{gigabytes(asked.total)} in {name} (weights {gigabytes(asked.weights)}{verdict})")
    here = "" if free is None else f"; {gigabytes(free)} are free here"
    return f"{', '.join(parts)}, with a forward of {POSITIONS} positions{here}"


def list_tensors(folder: Path, shape: Shape) -> dict[str, StoredTensor]:
    """The tensors that the files hold; where only the config is here, those that a network of its shape has."""
    from starr.model.files.weights import StoredTensor, read_headers, weight_files

    if any(folder.glob("*.safetensors")):
        return read_headers(weight_files(folder))
    return {name: StoredTensor(folder, tuple(each.shape), "BF16") for name, each in outline(shape).named_parameters()}


def find(name: str) -> tuple[Path, str]:
    """The folder of a model. Of a hub id that is not in the cache, only the config and the tokenizer are fetched."""
    from starr.model.files.hub import HEAD, download, locate

    if Path(name).expanduser().exists() or "/" not in name:
        return locate(name)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True)), name
    except Exception:  # whatever the hub's client says, the files are not here
        return download(name, HEAD), name


def describe(spec: ModelSpec, tokenizer: Tokenizer) -> dict[str, Any]:
    """A checkpoint in words, by key."""
    shape = spec.shape
    routing = shape.routing
    experts = f", {routing.chosen} of {routing.experts} experts of {routing.width}" if routing else ""
    heads = f"{shape.heads} heads, {shape.kv_heads} for keys and values"
    return {
        "name": spec.name,
        "family": spec.family,
        "parameters": f"{parameters(shape):,}",
        "shape": f"{shape.layers} layers, width {shape.width}, mlp {shape.mlp_width}{experts}, {heads}",
        "vocabulary": shape.vocab_size,
        "context": spec.max_length,
        "mask": f"{spec.mask_id} {tokenizer.piece(spec.mask_id)}",
        "ends": ", ".join(f"{token} {tokenizer.piece(token)}" for token in spec.eos_ids),
        "shifted": spec.shift,
        "attention": attention(spec),
        "strategy": spec.habits.strategy,
        "cache": spec.habits.cache,
        "chat template": tokenizer.has_chat,
    }


def attention(spec: ModelSpec) -> str:
    """Which positions attend to which, and how many of a block are decided together where that is not all of them."""
    if spec.block_length is None:
        return "full"
    parts = f", decided {spec.habits.window} at a time" if spec.habits.window else ""
    return f"block-causal, {spec.block_length} positions per block{parts}"


def outline(shape: Shape) -> nn.Module:
    """A network of this shape without its numbers."""
    import torch

    from starr.model.network.encoder import make_network

    with torch.device("meta"):
        return make_network(shape)


def parameters(shape: Shape) -> int:
    """Weights of a network of this shape, counted without making it."""
    return sum(weight.numel() for weight in outline(shape).parameters())


def size_of(folder: Path) -> int:
    """Bytes of a folder's weight files."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))
