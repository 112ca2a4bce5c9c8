"""BERT's tokenizer rebuilt from vocab.txt: words cut into the longest pieces of the list, ``##`` inside a word."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import WordPiece

from starr.errors import LoadError

UNKNOWN = "[UNK]"
SPECIAL = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")


def rebuild_wordpiece(text: str, *, lower: bool) -> Tokenizer:
    """One token a line, its id the line's number; those of ``SPECIAL`` that are there are special."""
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
