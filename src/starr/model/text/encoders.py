"""Who encodes a text: this process if the tokenizer's regular expressions are known, else a child process with limits.

A regular expression of somebody else may take forever on some texts and cannot be interrupted. The known ones look at
every character a bounded number of times. A file with any other is read by the child first, because its expressions
are already used on the added tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import tokenizers

from starr.errors import InputError, LoadError
from starr.model.text.bpe import SPLIT
from starr.model.text.child import Answerer, LimitedChild, answer_all
from starr.model.text.screen import STAGES, expressions

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


class Encoder(Protocol):
    """Writes a text as tokens."""

    def encode(self, text: str) -> list[int]:
        """The tokens of ``text`` with nothing added; InputError if it cannot."""


class InnerEncoder:
    """Encodes here."""

    def __init__(self, raw: tokenizers.Tokenizer) -> None:
        self.raw = raw

    def encode(self, text: str) -> list[int]:
        """See ``Encoder``."""
        try:
            ids: list[int] = encode_raw(self.raw, text)
        except TypeError:  # a lone surrogate cannot be UTF-8
            raise InputError("The text is not valid Unicode.", hint="Remove lone surrogates.", param="prompt") from None
        except BaseException as error:
            if not panics(error):
                raise
            raise InputError(f"{NAME} fails on this text.", param="prompt") from None
        return ids


def encode_raw(raw: tokenizers.Tokenizer, text: str) -> list[int]:
    """The library's tokens of a text. Its call for one text holds the interpreter, that for a list releases it."""
    if len(text) < LONG:
        return list(raw.encode(text, add_special_tokens=False).ids)
    return list(raw.encode_batch_fast([text], add_special_tokens=False)[0].ids)


class OuterEncoder:
    """Encodes in a child process, which reads the file when it starts and again after it was ended."""

    def __init__(self, file: Path) -> None:
        self.child = LimitedChild(__name__, {"file": str(file)}, NAME)

    def encode(self, text: str) -> list[int]:
        """See ``Encoder``."""
        ids: list[int] = self.child.ask({"text": text}, "prompt")["ids"]
        return ids


def panics(error: BaseException) -> bool:
    """Whether it is a fault inside the library, which is no Exception."""
    return type(error).__name__ == "PanicException"


def known(data: Mapping[str, Any]) -> bool:
    """Whether a tokenizer.json has no regular expressions but those of KNOWN."""
    return all(isinstance(found, str) and found in KNOWN for stage in STAGES for found in expressions(data.get(stage)))


def read_file(file: Path) -> tokenizers.Tokenizer:
    """The library's tokenizer of a tokenizer.json; a prompt is encoded as it is, neither lengthened nor cut."""
    raw = tokenizers.Tokenizer.from_file(str(file))
    raw.no_padding()
    raw.no_truncation()
    return raw


def as_text(raw: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A copy that encodes the text of added tokens like any other text."""
    copy = tokenizers.Tokenizer.from_str(raw.to_str())
    copy.add_special_tokens([token.content for token in raw.get_added_tokens_decoder().values()])
    copy.encode_special_tokens = True  # in the library's words: encode the text of special tokens as text
    return copy


def begin(words: dict[str, Any]) -> Answerer:
    """In the child: read the file, then encode texts."""
    try:
        encoder = InnerEncoder(as_text(read_file(Path(words["file"]))))
    except BaseException as error:  # the library raises bare Exception for every unreadable file
        if not (isinstance(error, Exception) or panics(error)):
            raise
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise LoadError(f"{NAME} cannot be read: {why}.") from None
    return lambda question: {"ids": encoder.encode(question["text"])}


if __name__ == "__main__":
    answer_all(begin, NAME, MEMORY)
