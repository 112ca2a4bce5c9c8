"""Tokenizers of repositories without tokenizer.json: Qwen2's byte-level BPE and BERT's WordPiece."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE, WordPiece

from starr.errors import LoadError
from starr.model.files.config import read_text

# Qwen2's split: contractions, words with one leading sign, single digits, punctuation, line ends, spaces.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
UNKNOWN = "[UNK]"
SPECIAL = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")


def rebuild_bpe(vocab: Mapping[str, int], merges: list[tuple[str, str]], added: Mapping[str, int]) -> Tokenizer:
    """Rebuild Qwen2's tokenizer; added tokens enter the vocabulary first, so that each keeps its released id."""
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
    """Read the pairs of merges.txt, best first; skip a first line ``#version``."""
    lines = read_text(path).split("\n")
    start = 1 if lines[0].startswith("#version") else 0
    pairs = [tuple(line.rstrip("\r").split(" ")) for line in lines[start:] if line.strip()]
    return [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]


def list_byte_letters() -> dict[str, int]:
    """Map each letter of byte-level BPE to its byte: itself where printable, else the next one from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(256)) - set(printable))
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


def rebuild_wordpiece(text: str, *, lower: bool) -> Tokenizer:
    """Rebuild BERT's tokenizer from vocab.txt: the id of a token is the number of its line."""
    lines = text.rstrip("\n").split("\n")
    vocabulary = {line.rstrip("\r"): index for index, line in enumerate(lines)}
    if UNKNOWN not in vocabulary:
        raise LoadError(f"vocab.txt has no {UNKNOWN}.", hint="Is it the list of a WordPiece tokenizer?")
    made = Tokenizer(WordPiece(vocabulary, unk_token=UNKNOWN))
    made.normalizer = normalizers.BertNormalizer(lowercase=lower)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens([token for token in SPECIAL if token in vocabulary])
    return made
