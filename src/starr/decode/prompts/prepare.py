"""From a prompt to the tokens of a row: the prompt, and the canvas after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starr.decode.prompts.infill import infill_layout
from starr.decode.prompts.layout import Layout, lay_out
from starr.errors import InputError, LengthError

if TYPE_CHECKING:
    from starr.decode.stops.base import StopRule
    from starr.model.load import Model
    from starr.options import ResolvedOptions

Prompt = str | Sequence[Mapping[str, str]] | Sequence[int]


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """The tokens of a prompt and the canvas after it."""

    tokens: list[int]
    canvas: Layout
    text: str  # the prompt, for display
    ends: bool = True  # an end-of-text ends the row
    rules: tuple[StopRule, ...] = ()  # stop rules that the canvas needs
    tail: int = 0  # canvas positions at the end that are not part of the answer


def build_canvas(model: Model, prompt: Prompt, options: ResolvedOptions) -> PreparedPrompt:
    """Put ``max_tokens`` masks or an ``ice`` template after a prompt."""
    tokens, text = encode_prompt(model, prompt, options.chat)
    check_length(len(tokens), options.max_tokens, model.spec.max_length)
    encode, mask = model.tokenizer.encode, model.spec.mask_id
    if options.ice is None:
        return PreparedPrompt(tokens, lay_out([options.max_tokens], encode, mask), text)
    canvas, answer = options.ice.layout(encode, mask, options.max_tokens)
    return PreparedPrompt(tokens, canvas, text, ends=False, rules=(options.ice.rule(answer),))


def build_infill(model: Model, prompt: Prompt, options: ResolvedOptions) -> PreparedPrompt:
    """Make a canvas of a whole text with holes; no end-of-text ends it."""
    if not isinstance(prompt, str) or options.ice is not None:
        raise InputError("Infilling takes a text with [MASK:n] holes and cannot be used with ice.", param="prompt")
    spec = model.spec
    found = infill_layout(prompt, model.tokenizer.encode, spec.mask_id, spec.max_length)
    canvas = Layout(found.tokens + spec.behind, found.masked + [False] * len(spec.behind))
    return PreparedPrompt(spec.before, canvas, prompt, ends=False)


def add_suffix(model: Model, prepared: PreparedPrompt, options: ResolvedOptions, suffix: str) -> PreparedPrompt:
    """Put a text after the canvas; the model sees it, and it is not part of the answer."""
    if model.spec.block_length is not None:
        raise InputError("suffix cannot be used: a block-causal model does not see what follows.", param="suffix")
    if options.constraint is not None or not prepared.ends:
        raise InputError("suffix cannot be used with ice or a structured answer.", param="suffix")
    tokens = model.tokenizer.encode(suffix)
    canvas = Layout(prepared.canvas.tokens + tokens, prepared.canvas.masked + [False] * len(tokens))
    return replace(prepared, canvas=canvas, ends=False, tail=len(tokens))


def encode_prompt(model: Model, prompt: Prompt, chat: bool | None) -> tuple[list[int], str]:
    """The tokens of a prompt, and its text for display."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise InputError("The prompt must not be empty.", hint="Give at least one word.", param="prompt")
        if model.tokenizer.has_chat if chat is None else chat:
            return model.tokenizer.chat([{"role": "user", "content": prompt}]), prompt
        start = [] if model.spec.bos_id is None else [model.spec.bos_id]
        return start + model.tokenizer.encode(prompt), prompt
    if not prompt:
        raise InputError("The prompt must not be empty.", hint="Give at least one message or token.", param="prompt")
    tokens = [token for token in prompt if isinstance(token, int)]
    messages = [dict(message) for message in prompt if isinstance(message, Mapping)]
    if tokens and not messages:
        check_ids(tokens, model.spec.shape.vocab_size)
        return tokens, model.tokenizer.decode(tokens)
    return model.tokenizer.chat(messages), str(messages[-1].get("content", ""))


def check_length(prompt: int, canvas: int, limit: int) -> None:
    """Raise unless both fit. It runs before a canvas is made, so that a huge one costs nothing."""
    if prompt + canvas > limit:
        raise LengthError(
            f"Prompt and canvas need {prompt} + {canvas} = {prompt + canvas} positions, the model has {limit}.",
            hint="Shorten the prompt or lower max_tokens.",
            param="max_tokens",
        )


def check_ids(tokens: list[int], size: int) -> None:
    """Raise unless every token id is within a vocabulary of this size."""
    wrong = [token for token in tokens if not 0 <= token < size]
    if wrong:
        raise InputError(f"Token ids must be within [0, {size - 1}], got {wrong[0]}.", param="prompt")


def is_many(prompt: Any) -> bool:
    """Whether this is a list of prompts. Raise if it is neither a prompt nor a list of prompts."""
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
