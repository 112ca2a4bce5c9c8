"""``starr models``: which models there are, and what a checkpoint says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import Attention, Common, FamilyName, Json
from starr.cli.report import dump, table
from starr.cli.verb import family, verb
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.network.shape import Shape
    from starr.model.spec import ModelSpec
    from starr.model.text.tokenizer import Tokenizer

KNOWN = (
    ("bundled", "llada", "packaged: word problems, functions, lines, grids"),
    ("bundled-dream", "dream", "packaged: the same tasks, logits shifted"),
    ("bundled-blocks", "sdar", "packaged: the same tasks, block-causal"),
    ("GSAI-ML/LLaDA-8B-Base", "llada", "8 B, base"),
    ("GSAI-ML/LLaDA-8B-Instruct", "llada", "8 B, chat"),
    ("GSAI-ML/LLaDA-1.5", "llada", "8 B, chat, preference-tuned"),
    ("Dream-org/Dream-v0-Base-7B", "dream", "7 B, base"),
    ("Dream-org/Dream-v0-Instruct-7B", "dream", "7 B, chat"),
    ("Dream-org/Dream-Coder-v0-Instruct-7B", "dream", "7 B, code"),
    ("apple/DiffuCoder-7B-cpGRPO", "dream", "7 B, code"),
    ("inclusionAI/LLaDA-MoE-7B-A1B-Instruct", "llada_moe", "7 B, 1 B active, chat"),
    ("inclusionAI/LLaDA2.0-mini", "llada2", "16 B, 1.4 B active, chat, block-causal"),
    ("inclusionAI/LLaDA2.1-mini", "llada2", "16 B, 1.4 B active, chat, block-causal, edits"),
    ("JetLM/SDAR-4B-Chat", "sdar", "4 B, chat, block-causal"),
    ("JetLM/SDAR-30B-A3B-Chat", "sdar_moe", "30 B, 3 B active, chat, block-causal"),
    ("Gen-Verse/TraDo-4B-Instruct", "sdar", "4 B, chat, block-causal"),
    ("Efficient-Large-Model/Fast_dLLM_v2_1.5B", "fast_dllm_v2", "1.5 B, chat, block-causal"),
    ("dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1", "a2d_qwen3", "0.6 B, chat: runs on a laptop"),
    ("dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1", "a2d_qwen3", "0.6 B, chat, block-causal: runs on a laptop"),
    ("answerdotai/ModernBERT-base", "modernbert", "0.15 B, fills holes"),
    ("dllm-hub/ModernBERT-large-chat-v0.1", "modernbert", "0.4 B, chat, weak"),
    ("google-bert/bert-base-uncased", "bert", "0.11 B, fills holes"),
    ("FacebookAI/roberta-base", "roberta", "0.12 B, fills holes"),
    ("albert/albert-base-v2", "albert", "0.01 B, fills holes"),
    ("nvidia/Nemotron-Labs-Diffusion-3B", "nemotron", "3.8 B, chat, block-causal"),
    ("radicalnumerics/RND1-Base-0910", "rnd1", "30 B, 3 B active, base"),
    ("ByteDance-Seed/Stable-DiffCoder-8B-Instruct", "stable_diffcoder", "8 B, code, block-causal"),
)


@dataclass(frozen=True, kw_only=True)
class ListModelsOptions(Common):
    """The flags of ``starr models``."""

    json: Json = False


@dataclass(frozen=True, kw_only=True)
class ShowModelOptions(Common):
    """The flags of ``starr models show``."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="bundled, bundled-dream, bundled-blocks, a folder, or a hub id in the cache."
        ),
    ]
    family: FamilyName = None
    attention: Attention = None
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
    verb(models, "convert", ConvertOptions, convert_one)


def show_all(options: ListModelsOptions) -> None:
    """List models of the supported families."""
    rows = [{"name": name, "family": kind, "here": is_here(name), "about": about} for name, kind, about in KNOWN]
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
    facts = describe(spec, tokenizer) | {"needs": needs_of(folder, spec.shape)}
    facts |= {"files": f"{size_of(folder) / 1e6:,.1f} MB", "folder": str(folder)}
    if options.json:
        print(dump(facts))
    else:
        width = max(map(len, facts))
        print("\n".join(f"{key:<{width}}  {said(value)}" for key, value in facts.items()))


def needs_of(folder: Path, shape: Shape) -> str:
    """Memory by dtype: weights, the largest tensor and one forward."""
    from starr.model.files.memory import DTYPES, POSITIONS, gigabytes, need
    from starr.model.files.weights import read_headers, weight_files

    found = read_headers(weight_files(folder))
    sizes = ", ".join(f"{gigabytes(need(found, shape, size).total)} in {name}" for name, size in DTYPES.items())
    return f"{sizes}, with a forward of {POSITIONS} positions"


def find(name: str) -> tuple[Path, str]:
    """The folder of a model that is on this machine: a hub id is looked up in the cache and never fetched."""
    from starr.model.files.hub import locate

    if Path(name).expanduser().exists() or "/" not in name:
        return locate(name)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, local_files_only=True)), name
    except Exception:  # whatever the hub's client says, the files are not here
        raise InputError(
            f"{name!r} is neither a folder nor in the hub's cache.", hint=f"`starr run --model {name} ...` fetches it."
        ) from None


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


def parameters(shape: Shape) -> int:
    """Weights of a network of this shape, counted without making it."""
    import torch

    from starr.model.network.encoder import make_network

    with torch.device("meta"):
        return sum(weight.numel() for weight in make_network(shape).parameters())


def size_of(folder: Path) -> int:
    """Bytes of a folder's weight files."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))
