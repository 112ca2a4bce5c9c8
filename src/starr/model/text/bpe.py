"""Byte-level BPE as Qwen2 has it: rebuilt from vocab.json and merges.txt, and the bytes that its letters stand for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from starr.model.files.config import read_text

# Qwen2's split: contractions, words with one leading sign, single digits, punctuation, line ends, spaces.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def rebuild(vocab: Mapping[str, int], merges: list[tuple[str, str]], added: Mapping[str, int]) -> Tokenizer:
    """Qwen2's tokenizer; added tokens enter the vocabulary first, so that each keeps the id it was released with."""
    bpe = Tokenizer(BPE(vocab={**vocab, **added}, merges=merges))
    bpe.normalizer = normalizers.NFC()
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens(sorted(added, key=added.__getitem__))
    return bpe


def read_merges(path: Path) -> list[tuple[str, str]]:
    """The pairs of merges.txt, best first; a first line ``#version`` is skipped."""
    lines = read_text(path).split("\n")
    start = 1 if lines[0].startswith("#version") else 0
    pairs = [tuple(line.rstrip("\r").split(" ")) for line in lines[start:] if line.strip()]
    return [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]


def byte_letters() -> dict[str, int]:
    """The letter that byte-level BPE writes for each byte: itself where printable, else the next from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(256)) - set(printable))
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(hidden)}
