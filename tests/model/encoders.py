"""Tiny checkpoints of encoders, made by transformers' own classes and written as they write them."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from tests.model.tiny import alphabet

BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
WORDS = ["tom", "has", "two", "red", "app", "##les", ".", ",", "pear", "caf\u00e9", "'"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 66,
    "attn_implementation": "eager",
}


def wordpiece() -> Tokenizer:
    """BERT's kind of tokenizer: lower case, words cut into pieces, ``##`` inside a word."""
    letters = [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    vocabulary = {word: index for index, word in enumerate([*BERT_TOKENS, *WORDS, *letters])}
    raw = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(strip_accents=False)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.decoder = decoders.WordPiece()
    raw.add_special_tokens(BERT_TOKENS)
    return raw


def byte_level() -> Tokenizer:
    """RoBERTa's kind: one token per byte, with its special tokens first."""
    vocabulary = {token: index for index, token in enumerate([*ROBERTA_TOKENS, *alphabet()])}
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(ROBERTA_TOKENS)
    return raw


def tokenizer_of(kind: str) -> Tokenizer:
    return byte_level() if kind == "roberta" else wordpiece()


def filled(net: torch.nn.Module) -> torch.nn.Module:
    """Random weights, biases and norms, so that every tensor matters."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for tensor in net.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.25)
    return net.eval()


def bert() -> torch.nn.Module:
    return filled(BertForMaskedLM(BertConfig(vocab_size=96, **SIZES)))


def albert() -> torch.nn.Module:
    config = AlbertConfig(vocab_size=96, embedding_size=16, num_hidden_groups=2, hidden_act="gelu_new", **SIZES)
    return filled(AlbertForMaskedLM(config))


def roberta() -> torch.nn.Module:
    return filled(RobertaForMaskedLM(RobertaConfig(vocab_size=272, **SIZES)))


def modernbert() -> torch.nn.Module:
    sizes = {**SIZES, "local_attention": 8, "global_attn_every_n_layers": 3}
    return filled(ModernBertForMaskedLM(ModernBertConfig(vocab_size=96, pad_token_id=0, **sizes)))


MAKERS: dict[str, Callable[[], torch.nn.Module]] = {
    "bert": bert,
    "albert": albert,
    "roberta": roberta,
    "modernbert": modernbert,
}


def write(net: torch.nn.Module, folder: Path, **change) -> Path:
    """The folder that ``save_pretrained`` makes, with a tokenizer."""
    net.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    tokenizer_of(config["model_type"]).save(str(folder / "tokenizer.json"))
    return folder


def write_old(net: torch.nn.Module, folder: Path) -> Path:
    """As checkpoints of 2019 have it: norms have gamma and beta, and there are heads that nobody needs."""
    write(net, folder)
    state = {}
    for name, tensor in net.state_dict().items():
        if "LayerNorm" in name:
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        state[name] = tensor.clone()
    state["bert.pooler.dense.weight"] = torch.zeros(32, 32)
    state["cls.seq_relationship.bias"] = torch.zeros(2)
    save_file(state, folder / "model.safetensors")
    return folder
