"""``starr models``: which models there are, and what a checkpoint says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import Common, Json
from starr.cli.report import dump, table
from starr.cli.verb import family, verb
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.layers import Shape
    from starr.model.spec import ModelSpec
    from starr.model.tokenizer import Tokenizer

KNOWN = (
    ("bundled", "llada", "in this package: word problems and list functions"),
    ("GSAI-ML/LLaDA-8B-Base", "llada", "8 B, base"),
    ("GSAI-ML/LLaDA-8B-Instruct", "llada", "8 B, chat"),
    ("GSAI-ML/LLaDA-1.5", "llada", "8 B, chat, preference-tuned"),
    ("Dream-org/Dream-v0-Base-7B", "dream", "7 B, base"),
    ("Dream-org/Dream-v0-Instruct-7B", "dream", "7 B, chat"),
    ("Dream-org/Dream-Coder-v0-Instruct-7B", "dream", "7 B, code"),
    ("apple/DiffuCoder-7B-cpGRPO", "dream", "7 B, code"),
)


@dataclass(frozen=True, kw_only=True)
class ListOptions(Common):
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class ShowOptions(Common):
    name: Annotated[str, typer.Argument(metavar="NAME", help="bundled, a folder, or a hub id in the cache.")]
    json: Json = False


def add(app: typer.Typer) -> None:
    models = family(app, "models", "Models: which there are, and what a checkpoint holds.", ListOptions, show_all)
    verb(models, "list", ListOptions, show_all)
    verb(models, "show", ShowOptions, show_one)


def show_all(options: ListOptions) -> None:
    """List the models known to work."""
    rows = [{"name": name, "family": kind, "here": is_here(name), "about": about} for name, kind, about in KNOWN]
    if options.json:
        print(dump(rows))
    else:
        cells = [(row["name"], row["family"], "yes" if row["here"] else "no", row["about"]) for row in rows]
        print(table(("model", "family", "on this machine", "about"), cells))


def is_here(name: str) -> bool:
    """Whether the model's files are in the package or in the hub's cache."""
    if name == "bundled":
        return (Path(__file__).parents[1] / "model" / "bundled" / "config.json").exists()
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json"), str)


def show_one(options: ShowOptions) -> None:
    """Show what a checkpoint says of itself."""
    from starr.model.load import read_folder

    folder, name = find(options.name)
    spec, tokenizer, _ = read_folder(folder, name)
    facts = describe(spec, tokenizer) | {"files": f"{size_of(folder) / 1e6:,.1f} MB", "folder": str(folder)}
    if options.json:
        print(dump(facts))
    else:
        width = max(map(len, facts))
        print("\n".join(f"{key:<{width}}  {value}" for key, value in facts.items()))


def find(name: str) -> tuple[Path, str]:
    """The folder of a model that is on this machine: a hub id is looked up in the cache and never fetched."""
    from starr.model.hub import locate

    if name == "bundled" or Path(name).expanduser().exists() or "/" not in name:
        return locate(name)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True)), name
    except Exception:  # whatever the hub's client says, the files are not here
        raise InputError(
            f"{name!r} is no folder and not in the hub's cache.", hint=f"`starr run --model {name} ...` fetches it."
        ) from None


def describe(spec: ModelSpec, tokenizer: Tokenizer) -> dict[str, Any]:
    shape = spec.shape
    heads = f"{shape.heads} heads, {shape.kv_heads} for keys and values"
    return {
        "name": spec.name,
        "family": spec.family,
        "parameters": f"{parameters(shape):,}",
        "shape": f"{shape.layers} layers, width {shape.width}, mlp {shape.mlp_width}, {heads}",
        "vocabulary": shape.vocab_size,
        "context": spec.max_length,
        "mask": f"{spec.mask_id} {tokenizer.piece(spec.mask_id)}",
        "ends": ", ".join(f"{token} {tokenizer.piece(token)}" for token in spec.eos_ids),
        "shifted": spec.shift,
        "chat template": tokenizer.has_chat,
    }


def parameters(shape: Shape) -> int:
    """Weights of a network of this shape, counted without making it."""
    import torch

    from starr.model.transformer import Transformer

    with torch.device("meta"):
        return sum(weight.numel() for weight in Transformer(shape).parameters())


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))
