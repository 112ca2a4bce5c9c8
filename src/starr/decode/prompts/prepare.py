"""From a prompt to the tokens of a row: the prompt, and the canvas after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from starr.decode.prompts.given import Prompt as Prompt
from starr.decode.prompts.infill import infill_layout
from starr.decode.prompts.layout import Layout, lay_out
from starr.decode.prompts.tools import Toolbox, hand_over, write_out
from starr.errors import InputError, LengthError

if TYPE_CHECKING:
    from starr.decode.stops.base import StopRule
    from starr.model.load import Model
    from starr.options import ResolvedOptions


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
    tokens, text = encode_prompt(model, prompt, options.chat, options.system, options.toolbox)
    check_length(len(tokens), options.max_tokens, model.spec.max_length)
    encode, mask = model.tokenizer.encode, model.spec.mask_id
    if options.ice is None:
        return PreparedPrompt(tokens, lay_out([options.max_tokens], encode, mask), text)
    canvas, answer = options.ice.layout(encode, mask, options.max_tokens)
    return PreparedPrompt(tokens, canvas, text, ends=False, rules=(options.ice.rule(answer),))


def build_infill(model: Model, prompt: Prompt, options: ResolvedOptions) -> PreparedPrompt:
    """Make a canvas of a whole text with holes; no end-of-text ends it."""
    if not isinstance(prompt, str) or options.ice is not None or options.system is not None:
        rule = "Infilling takes a text with [MASK:n] holes and cannot be used with ice or system."
        raise InputError(rule, param="prompt")
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


def encode_prompt(
    model: Model, prompt: Prompt, chat: bool | None, system: str | None = None, toolbox: Toolbox | None = None
) -> tuple[list[int], str]:
    """The tokens of a prompt, and its text for display. ``system`` goes before the messages."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise InputError("The prompt must not be empty.", hint="Give at least one word.", param="prompt")
        if model.tokenizer.has_chat if chat is None else chat:
            return encode_chat(model, add_system([{"role": "user", "content": prompt}], system), toolbox), prompt
        refuse_system(system, "a prompt without a chat template")
        if toolbox is not None:
            raise InputError("tools need a chat.", hint="Give messages to a model with a template.", param="tools")
        start = [] if model.spec.bos_id is None else [model.spec.bos_id]
        return start + model.tokenizer.encode(prompt), prompt
    if not prompt:
        raise InputError("The prompt must not be empty.", hint="Give at least one message or token.", param="prompt")
    tokens = [token for token in prompt if isinstance(token, int)]
    messages = [dict(message) for message in prompt if isinstance(message, Mapping)]
    if tokens and not messages:
        refuse_system(system, "token ids")
        check_ids(tokens, model.spec.shape.vocab_size)
        if toolbox is not None:
            raise InputError("tools need a chat.", hint="Give messages, not token ids.", param="tools")
        return tokens, model.tokenizer.decode(tokens)
    return encode_chat(model, add_system(messages, system), toolbox), str(messages[-1].get("content", ""))


def encode_chat(model: Model, messages: Sequence[Mapping[str, Any]], toolbox: Toolbox | None = None) -> list[int]:
    """The tokens of messages, with the functions that the answer may call."""
    tokenizer = model.tokenizer
    if not tokenizer.takes_tools:
        return tokenizer.chat(write_out(messages, toolbox))
    told = hand_over(messages)
    return tokenizer.chat(told) if toolbox is None else tokenizer.chat(told, toolbox.shown())


def add_system(messages: list[dict[str, Any]], system: str | None) -> list[dict[str, Any]]:
    """The messages after a system prompt."""
    if system is None:
        return messages
    if messages and messages[0].get("role") == "system":
        refuse_system(system, "messages that begin with a system prompt of their own")
    return [{"role": "system", "content": system}, *messages]


def refuse_system(system: str | None, what: str) -> None:
    """Raise where a system prompt is given and has no place."""
    if system is not None:
        raise InputError(f"system cannot be used with {what}.", hint="Leave it out.", param="system")


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
