"""Tiny checkpoints in the released formats, written literally: names, config keys and files as the hub has them."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

LLADA_SPECIAL = {
    "<|startoftext|>": 256,
    "<|endoftext|>": 257,
    "<|mdm_mask|>": 258,
    "<|start_header_id|>": 259,
    "<|end_header_id|>": 260,
    "<|eot_id|>": 261,
}
DREAM_SPECIAL = {
    "<|endoftext|>": 266,
    "<|im_start|>": 267,
    "<|im_end|>": 268,
    "<|beginoftext|>": 269,
    "<|mask|>": 270,
    "<|dlm_pad|>": 271,
}
# The last six cross what Qwen2's split keeps apart or together: digits, spaces, line ends, contractions.
DREAM_MERGES = [
    *[("H", "e"), ("l", "l"), ("He", "ll"), ("Ġ", "w")],
    *[("1", "2"), ("Ġ", "Ġ"), ("Ċ", "Ċ"), (".", "Ċ"), ("'", "s"), ("s", "l")],
]

LLADA_CONFIG = {
    "activation_type": "silu",
    "alibi": False,
    "alibi_bias_max": 8.0,
    "architectures": ["LLaDAModelLM"],
    "attention_dropout": 0.0,
    "attention_layer_norm": False,
    "bias_for_layer_norm": False,
    "block_group_size": 1,
    "block_type": "llama",
    "d_model": 32,
    "embedding_size": 272,
    "eos_token_id": 257,
    "flash_attention": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "input_emb_norm": False,
    "layer_norm_type": "rms",
    "layer_norm_with_affine": True,
    "mask_token_id": 258,
    "max_sequence_length": 64,
    "mlp_hidden_size": 48,
    "mlp_ratio": 4,
    "model_type": "llada",
    "multi_query_attention": None,
    "n_heads": 4,
    "n_kv_heads": 2,
    "n_layers": 3,
    "pad_token_id": 257,
    "precision": "amp_bf16",
    "rms_norm_eps": 1e-05,
    "rope": True,
    "rope_full_precision": True,
    "rope_theta": 500000.0,
    "scale_logits": False,
    "use_cache": False,
    "vocab_size": 272,
    "weight_tying": False,
}
DREAM_CONFIG = {
    "architectures": ["DreamModel"],
    "attention_dropout": 0.0,
    "bos_token_id": 266,
    "eos_token_id": 266,
    "hidden_act": "silu",
    "hidden_size": 32,
    "intermediate_size": 48,
    "mask_token_id": 270,
    "max_position_embeddings": 128,
    "model_type": "Dream",
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "pad_token_id": 266,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_mrope": False,
    "use_sliding_window": False,
    "vocab_size": 280,
}


def alphabet() -> dict[str, int]:
    return {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}


def byte_tokenizer(special=LLADA_SPECIAL) -> Tokenizer:
    """One token per byte, and LLaDA's special tokens behind them."""
    raw = Tokenizer(models.BPE(vocab=alphabet(), merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(list(special))
    return raw


def llada_tensors(config=LLADA_CONFIG, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random weights under LLaDA's released names."""
    generator = torch.Generator().manual_seed(seed)
    width, mlp = config["d_model"], config["mlp_hidden_size"]
    kv = width // config["n_heads"] * config["n_kv_heads"]
    sizes = {"model.transformer.wte.weight": (config["embedding_size"], width)}
    for i in range(config["n_layers"]):
        block = f"model.transformer.blocks.{i}"
        sizes |= {
            f"{block}.attn_norm.weight": (width,),
            f"{block}.q_proj.weight": (width, width),
            f"{block}.k_proj.weight": (kv, width),
            f"{block}.v_proj.weight": (kv, width),
            f"{block}.attn_out.weight": (width, width),
            f"{block}.ff_norm.weight": (width,),
            f"{block}.ff_proj.weight": (mlp, width),
            f"{block}.up_proj.weight": (mlp, width),
            f"{block}.ff_out.weight": (width, mlp),
        }
    sizes["model.transformer.ln_f.weight"] = (width,)
    sizes["model.transformer.ff_out.weight"] = (config["embedding_size"], width)
    return {name: torch.randn(size, generator=generator) * 0.2 for name, size in sizes.items()}


def write_shards(folder: Path, tensors: dict[str, torch.Tensor], count: int) -> None:
    names = list(tensors)
    weight_map = {}
    for part in range(count):
        file = f"model-{part + 1:05d}-of-{count:05d}.safetensors"
        chosen = names[part::count]
        save_file({name: tensors[name] for name in chosen}, folder / file)
        weight_map |= dict.fromkeys(chosen, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def write_llada(folder: Path, *, config=LLADA_CONFIG, tensors=None, shards: int = 0) -> Path:
    """A LLaDA folder with one weight file, or with ``shards`` and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    tensors = llada_tensors(config) if tensors is None else tensors
    if shards:
        write_shards(folder, tensors, shards)
    else:
        save_file(tensors, folder / "model.safetensors")
    return folder


def write_dream_tokenizer(folder: Path) -> None:
    """Dream ships no tokenizer.json: vocab.json, merges.txt and the added tokens in tokenizer_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    vocab = alphabet() | {first + second: 256 + i for i, (first, second) in enumerate(DREAM_MERGES)}
    (folder / "vocab.json").write_text(json.dumps(vocab))
    merges = "\n".join(" ".join(pair) for pair in DREAM_MERGES)
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", encoding="utf-8")
    decoder = {str(index): {"content": name, "special": True} for name, index in DREAM_SPECIAL.items()}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))


def write_dream(folder: Path, tensors: dict[str, torch.Tensor], config=DREAM_CONFIG) -> Path:
    write_dream_tokenizer(folder)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return folder
