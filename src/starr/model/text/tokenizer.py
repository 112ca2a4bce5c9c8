"""Text to tokens and back. What users write is always text: special tokens come only from chat templates and ids."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import tokenizers

from starr.errors import InputError, LoadError
from starr.model.files.config import read_json, read_text
from starr.model.text.chat import Messages, render
from starr.model.text.encoders import (
    LONG,
    Encoder,
    copy_as_text,
    encode_here,
    has_known_expressions,
    read_tokenizer_file,
    start_encoder,
)
from starr.model.text.rebuild import list_byte_letters, read_merges, rebuild_bpe, rebuild_wordpiece
from starr.model.text.screen import check_ids, screen
from starr.model.text.templates import Writer, read_template

BYTES = list_byte_letters()
TAKES_TOOLS = re.compile(r"\bin\s+tools\b|\btools\s*\|\s*tojson\b")
HERMES = ("<tool_call>\n", "\n</tool_call>")  # Qwen's marks, and those of many others
MARKS = ("bos_token", "eos_token", "pad_token", "mask_token")
CONTROL = ("<|expand|>", "<|delete|>")  # of DreamOn: they change a canvas and are no text, whatever their file says


class Tokenizer:
    """A ``tokenizers`` tokenizer that never reads special tokens out of user text, and its chat template, if any."""

    def __init__(
        self,
        raw: tokenizers.Tokenizer,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        added = raw.get_added_tokens_decoder()
        self.added: dict[str, int] = {token.content: index for index, token in added.items()}
        self.special_ids = frozenset(i for i, token in added.items() if token.special or token.content in CONTROL)
        self.spaced = isinstance(raw.model, tokenizers.models.WordPiece)  # all tokens but the first follow a space
        self._raw = copy_as_text(raw)
        self._encode = encoder or partial(encode_here, self._raw)
        self.template = template or None
        self._write: Writer | None = read_template(template) if template else None
        self._variables = dict(variables or {})
        said = [raw.to_str(), template, sorted(self._variables.items())]
        self.digest = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]  # of vocabulary, rules and template

    @property
    def has_chat(self) -> bool:
        """Whether there is a chat template."""
        return self._write is not None

    @property
    def takes_tools(self) -> bool:
        """Whether the chat template lists the functions that an answer may call."""
        return TAKES_TOOLS.search(self.template or "") is not None

    @property
    def call_marks(self) -> tuple[str, str]:
        """What the chat template wants around a call; nothing where it has no such marks."""
        return HERMES if self.takes_tools and HERMES[0].strip() in (self.template or "") else ("", "")

    @property
    def mask_id(self) -> int | None:
        """The id of the mask token that the tokenizer's own files name."""
        return self.marks["mask_token"]

    @property
    def marks(self) -> dict[str, int | None]:
        """The ids of ``bos_token`` and its like, where the tokenizer's own files name them."""
        return {name: self.added.get(self._variables.get(name, "")) for name in MARKS}

    @cached_property
    def size(self) -> int:
        """One more than the largest token id."""
        return max(self._raw.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def encode(self, text: str) -> list[int]:
        """Tokens of ``text`` with nothing added; the text of a special token is encoded like any other text."""
        return self._encode(text)

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        """Text of ``ids``; special tokens are left out unless ``skip_special`` is False."""
        kept = [i for i in ids if not (skip_special and i in self.special_ids)]
        if len(kept) < LONG:
            return str(self._raw.decode(kept, skip_special_tokens=False))
        return str(self._raw.decode_batch([kept], skip_special_tokens=False)[0])  # other threads run meanwhile

    def piece(self, token: int) -> str:
        """One token as a human may read it; part of a character shows as U+FFFD, an unused id as nothing."""
        return self.decode([token], skip_special=False)

    def bytes_of(self, token: int) -> bytes:
        """The exact bytes one token stands for, also where they are only part of a character."""
        letters: str = self._raw.id_to_token(token) or ""
        if letters in self.added:
            return letters.encode()
        if not isinstance(self._raw.model, tokenizers.models.BPE) and self._raw.decoder is not None:
            joined: str = self._raw.decoder.decode(["0", letters])  # as it stands behind another token
            return joined.removeprefix("0").encode()
        if not set(letters) <= BYTES.keys():
            return letters.encode()
        return bytes(BYTES[letter] for letter in letters)

    def chat(self, messages: Messages, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """Tokens of a chat (``role`` and ``content`` per message), ready for the assistant's answer.

        ``tools`` are for templates that take them.
        """
        return self.encode_pieces(self.pieces(messages, tools))

    def pieces(self, messages: Messages, tools: Sequence[Mapping[str, Any]] = ()) -> list[tuple[str, bool]]:
        """The same as text, cut where the template wrote a special token: (text, whether it is one)."""
        if self._write is None:
            raise InputError("This model has no chat template.", hint="Give it a plain prompt.", param="messages")
        return render(self._write, messages, self.added, self._variables, tools)

    def encode_pieces(self, pieces: Sequence[tuple[str, bool]]) -> list[int]:
        """Tokens of text in pieces; only those marked as special become special tokens."""
        ids: list[int] = []
        for text, special in pieces:
            ids += [self.added[text]] if special else self.encode(text)
        return ids


RAW_FILES = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt")


def read_tokenizer(
    folder: Path,
    template: str | None = None,
    template_tokens: Sequence[str] = (),
    variables: Mapping[str, Any] | None = None,
) -> Tokenizer:
    """Read the tokenizer in ``folder``, with its own chat template, else with ``template`` if it has those tokens.

    ``variables`` are for whichever template there is.
    """
    config_file = folder / "tokenizer_config.json"
    config = read_json(config_file) if config_file.exists() else {}
    raw, encoder = read_raw(folder, config)
    source = find_template(folder, config)
    if source is None:
        names = {token.content for token in raw.get_added_tokens_decoder().values()}
        source = template if names.issuperset(template_tokens) else None
    return Tokenizer(raw, source, read_token_variables(config) | dict(variables or {}), encoder)


def read_raw(folder: Path, config: Mapping[str, Any]) -> tuple[tokenizers.Tokenizer, Encoder | None]:
    """Read tokenizer.json, else vocab.json and merges.txt (byte-level BPE), else vocab.txt (WordPiece).

    The second value is the child that encodes, where the file's regular expressions are not known.
    """
    single, vocab, merges, words = (folder / name for name in RAW_FILES)
    for file in (single, vocab, merges, words):
        if file.exists() and not file.is_file():
            raise LoadError(f"{file} is not a regular file.")
    if not single.exists() and not (vocab.exists() and merges.exists()) and not words.exists():
        hint = "It needs tokenizer.json, vocab.json and merges.txt, or vocab.txt."
        raise LoadError(f"{folder} has no tokenizer.", hint=hint)
    try:
        if single.exists():
            data = read_json(single)
            screen(data)
            encoder = None if has_known_expressions(data) else start_encoder(single)  # starts first: it may fail
            return read_tokenizer_file(single), encoder
        if not vocab.exists():
            return rebuild_wordpiece(read_text(words), lower=config.get("do_lower_case", True) is not False), None
        letters, added = read_json(vocab), read_added_tokens(folder, config)
        check_ids([*letters.values(), *added.values()])
        return rebuild_bpe(letters, read_merges(merges), added), None
    except LoadError:
        raise
    except Exception as error:  # the library raises bare Exception for every unreadable file
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        hint = "Copy or download it again."
        raise LoadError(f"The tokenizer in {folder} cannot be read: {why}.", hint=hint) from None


def read_added_tokens(folder: Path, config: Mapping[str, Any]) -> dict[str, int]:
    """Read added tokens from tokenizer_config.json and added_tokens.json, for lack of a tokenizer.json."""
    decoder = config.get("added_tokens_decoder") or {}
    found = {entry["content"]: int(index) for index, entry in decoder.items()}
    extra = folder / "added_tokens.json"
    return found | ({name: int(index) for name, index in read_json(extra).items()} if extra.exists() else {})


def find_template(folder: Path, config: Mapping[str, Any]) -> str | None:
    """Find the repository's own chat template: in a file, or in the config as a text or a list of named texts."""
    file = folder / "chat_template.jinja"
    if file.exists():
        return read_text(file)
    found = config.get("chat_template")
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found if isinstance(entry, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else None


def read_token_variables(config: Mapping[str, Any]) -> dict[str, str]:
    """Read ``bos_token`` and the like, which templates name: each is a text, or an object with ``content``."""
    found = {key: config.get(key) for key in MARKS}
    texts = {key: value.get("content") if isinstance(value, dict) else value for key, value in found.items()}
    return {key: value if isinstance(value, str) else "" for key, value in texts.items()}
