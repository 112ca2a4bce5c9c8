"""Prompts in the types that people have: texts, messages, token ids, and collections of them, from any library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starr.errors import InputError
from starr.named import plain_number

Prompt = str | Sequence[Mapping[str, Any]] | Sequence[int]
"""One prompt: text, messages with a role and a content, or token ids."""

RULE = "A prompt is text, messages or token ids"


def read_prompts(given: Any) -> tuple[list[Prompt], bool]:
    """The prompts, and whether there was a collection of them. Raise if it is neither a prompt nor a collection.

    An array, a tensor, a column of a table, a tuple and a generator count as the lists that they hold.
    """
    found = read_value(given)
    if isinstance(found, str):
        return [found], False
    if not isinstance(found, list):
        shown = " ".join(repr(given).split())
        raise InputError(f"{RULE}, not {type(given).__name__}: {shown:.60}.", hint=hint_for(given), param="prompt")
    kinds = {kind_of(part) for part in found}
    if len(kinds) > 1 or "other" in kinds:
        rule = "A list must hold prompts (texts or lists) only, messages only or token ids only."
        raise InputError(rule, hint=f"Got {given!r:.80}", param="prompt")
    if kinds <= {"prompt"}:
        return [read_one(part) for part in found], True
    return [found], False


def read_one(given: Any) -> Prompt:
    """One prompt. Raise if it is anything else."""
    prompts, many = read_prompts(given)
    if many:
        raise InputError(f"{RULE}, not a list of prompts: {given!r:.60}.", param="prompt")
    return prompts[0]


def read_value(given: Any) -> Any:
    """A text, or a list of texts, numbers, messages and lists. Anything else stays as it is."""
    if isinstance(given, str):
        return str(given)
    if isinstance(given, Mapping):
        return read_message(given)
    if isinstance(given, bytes) or hasattr(given, "columns"):  # a table would give the names of its columns
        return given
    if hasattr(given, "tolist"):  # an array, a tensor, a column of a table, or one number of them
        given = given.tolist()
    return [read_value(part) for part in given] if isinstance(given, Iterable) else plain_number(given)


def read_message(message: Mapping[Any, Any]) -> dict[Any, Any]:
    """A message whose content is one text; parts of type text are joined."""
    content = message.get("content")
    if isinstance(content, str) or not isinstance(content, Sequence):
        return dict(message)
    texts = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else part
        if not isinstance(text, str):
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise InputError(f"The parts of a message must be of type text, got {kind!r}.", param="prompt")
        texts.append(text)
    return {**message, "content": "".join(texts)}


def kind_of(part: Any) -> str:
    """What a part of a list makes it: a list of prompts, of messages or of token ids."""
    if isinstance(part, str | list):
        return "prompt"
    if isinstance(part, bool) or not isinstance(part, int | dict):
        return "other"
    return "id" if isinstance(part, int) else "message"


def hint_for(given: Any) -> str:
    """What to give in place of something that is no prompt, where that is clear."""
    if hasattr(given, "columns"):
        return "Give one column of the table."
    return "Give a list of messages." if isinstance(given, Mapping) and "role" in given else ""
