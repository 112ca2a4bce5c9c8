"""What is given as a prompt: one text, messages or token ids, or a list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starr.errors import InputError

Prompt = str | Sequence[Mapping[str, str]] | Sequence[int]


def is_many(prompt: Any) -> bool:
    """Whether this is a list of prompts; what is neither a prompt nor a list of them is an error that says so."""
    if isinstance(prompt, str):
        return False
    if isinstance(prompt, Mapping | bytes) or not isinstance(prompt, Sequence):
        kind = type(prompt).__name__
        raise InputError(f"A prompt is text, messages or token ids, not {kind}: {prompt!r:.60}.", param="prompt")
    kinds = {kind_of(part) for part in prompt}
    if len(kinds) > 1 or "other" in kinds:
        raise InputError(
            "A list must hold prompts (texts or lists) only, messages only or token ids only.",
            hint=f"Got {prompt!r:.80}",
            param="prompt",
        )
    return kinds <= {"prompt"}


def kind_of(part: Any) -> str:
    """What a part of a list makes it: a list of prompts, of messages or of token ids."""
    if isinstance(part, bool):
        return "other"
    if isinstance(part, str) or (isinstance(part, Sequence) and not isinstance(part, bytes)):
        return "prompt"
    return "id" if isinstance(part, int) else "message" if isinstance(part, Mapping) else "other"
