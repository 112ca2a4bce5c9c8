"""Encode a text: in this process if the tokenizer's regular expressions are known, else in a child with limits.

A regular expression of somebody else may take forever on some texts and cannot be interrupted. A known one reads every
character a bounded number of times. The child reads any other file before this process does, because the library
already applies its expressions to the added tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import tokenizers

from starr.errors import InputError, LoadError
from starr.model.child import Answerer, LimitedChild, answer_all
from starr.model.text.rebuild import SPLIT
from starr.model.text.screen import STAGES, find_expressions

MEMORY = 2 << 30  # bytes of the child
NAME = "The model's tokenizer"
LONG = 4096  # characters from which on a text is encoded while other threads run
KNOWN = frozenset(
    {
        SPLIT,
        SPLIT.replace(r"|\p{N}|", r"|\p{N}{1,3}|"),  # Llama 3
        r"\n+ *| ?\p{L}+| ?\d| ?[^\s\p{L}\d]+|\s+",  # the bundled model
    }
)


Encoder = Callable[[str], list[int]]
"""Gives the tokens of a text with nothing added, or raises InputError."""


def encode_here(raw: tokenizers.Tokenizer, text: str) -> list[int]:
    """Encode a text in this process."""
    try:
        return encode_raw(raw, text)
    except TypeError:  # a lone surrogate cannot be UTF-8
        raise InputError("The text is not valid Unicode.", hint="Remove lone surrogates.", param="prompt") from None
    except BaseException as error:
        if not is_panic(error):
            raise
        raise InputError(f"{NAME} fails on this text.", param="prompt") from None


def encode_raw(raw: tokenizers.Tokenizer, text: str) -> list[int]:
    """Call the library. Its call for one text holds the interpreter; its call for a list releases the interpreter."""
    if len(text) < LONG:
        return list(raw.encode(text, add_special_tokens=False).ids)
    return list(raw.encode_batch_fast([text], add_special_tokens=False)[0].ids)


def start_encoder(file: Path) -> Encoder:
    """Start a child process that reads the file and encodes texts."""
    return partial(ask_child, LimitedChild(__name__, {"file": str(file)}, NAME))


def ask_child(child: LimitedChild, text: str) -> list[int]:
    """Let the child encode a text."""
    ids: list[int] = child.ask({"text": text}, "prompt")["ids"]
    return ids


def is_panic(error: BaseException) -> bool:
    """Test whether an error is a panic of the library, which is no Exception."""
    return type(error).__name__ == "PanicException"


def has_known_expressions(data: Mapping[str, Any]) -> bool:
    """Test whether every regular expression of a tokenizer.json is one of KNOWN."""
    patterns = (pattern for stage in STAGES for pattern in find_expressions(data.get(stage)))
    return all(isinstance(pattern, str) and pattern in KNOWN for pattern in patterns)


def read_tokenizer_file(file: Path) -> tokenizers.Tokenizer:
    """Read a tokenizer.json, without its padding and truncation of prompts."""
    raw = tokenizers.Tokenizer.from_file(str(file))
    raw.no_padding()
    raw.no_truncation()
    return raw


def copy_as_text(raw: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Copy a tokenizer so that it encodes the text of added tokens like any other text."""
    copy = tokenizers.Tokenizer.from_str(raw.to_str())
    copy.add_special_tokens([token.content for token in raw.get_added_tokens_decoder().values()])
    copy.encode_special_tokens = True  # in the library's words: encode the text of special tokens as text
    return copy


def begin(words: dict[str, Any]) -> Answerer:
    """Read the file in the child; return what encodes texts."""
    try:
        raw = copy_as_text(read_tokenizer_file(Path(words["file"])))
    except BaseException as error:  # the library raises bare Exception for every unreadable file
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise LoadError(f"{NAME} cannot be read: {why}.") from None
    return lambda question: {"ids": encode_here(raw, question["text"])}


if __name__ == "__main__":
    answer_all(begin, NAME, MEMORY)
