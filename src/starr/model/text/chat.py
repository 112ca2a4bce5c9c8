"""Chat templates: the two built-in ones, and rendering in a sandbox that keeps what users write literal.

A message that contains the text of a special token must not become that token: literal mask text in a prompt is text.
So messages are guarded. Before rendering, a guard character goes before every special token's text in a message. The
rendered text is split on special tokens without a guard, which the template wrote. Then the guards are taken out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from starr.errors import InputError, LoadError

LLADA_TEMPLATE = """\
<|startoftext|>
{%- for message in messages -%}
{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content.strip() + '<|eot_id|>' }}
{%- endfor -%}
{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' if add_generation_prompt }}"""

DREAM_TEMPLATE = """\
{%- if messages[0].role != 'system' -%}
{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif -%}
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor -%}
{{ '<|im_start|>assistant\\n' if add_generation_prompt }}"""

# Qwen3's form of a model that shall not think: what it would have thought is empty.
NO_THINKING_TEMPLATE = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor -%}
{{ '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' if add_generation_prompt }}"""

# dllm's form for encoders: plain text, no special tokens; an answer ends with the text [/Answer].
ANSWER_TEMPLATE = """\
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{{ '[SYS]\\n' + message.content.strip() + '\\n[/SYS]\\n\\n' }}
{%- elif message.role == 'user' -%}
{{ '[Question]\\n' + message.content.strip() + '\\n[/Question]\\n\\n' }}
{%- else -%}
{{ '[Answer]\\n' + message.content.strip() + '\\n[/Answer]\\n\\n' }}
{%- endif -%}
{%- endfor -%}
{{ '[Answer]\\n' if add_generation_prompt }}"""

Messages = Sequence[Mapping[str, Any]]
REFUSALS = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
MOST_TEXT = 8_000_000  # characters that a template may write
GUARDS = range(0xFDD0, 0xFDF0)  # Unicode noncharacters: no text should hold them, and we take one that none does


def compile_template(source: str) -> Template:
    """Compile a template in an immutable sandbox, with the helpers that released templates call."""
    sandbox = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"], autoescape=False
    )
    sandbox.globals["raise_exception"] = raise_exception
    sandbox.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        return sandbox.from_string(source)
    except Exception as error:  # what nests too deep ends in errors of the parser, the compiler or Python's own
        why = str(error).partition("\n")[0] or type(error).__name__
        raise LoadError(f"The model's chat template cannot be read: {why}.") from None


def raise_exception(message: str) -> NoReturn:
    """Refuse messages; templates call this."""
    raise TemplateError(message)


def write_text(template: Template, messages: Messages, variables: Mapping[str, Any]) -> str:
    """Render messages; InputError if it refuses or writes more than MOST_TEXT characters."""
    pieces, length = [], 0
    try:
        for piece in template.generate(messages=messages, add_generation_prompt=True, **variables):
            pieces.append(piece)
            length += len(piece)
            if length > MOST_TEXT:
                raise InputError("The model's chat template writes too much.", param="messages")
        return "".join(pieces)
    except REFUSALS as error:
        raise InputError(f"The chat template refuses these messages: {error}.", param="messages") from None


def check_messages(messages: Messages) -> None:
    """Check that every message has a text ``role`` and ``content``, and that there is one."""
    if not messages:
        raise InputError("A chat needs at least one message.", param="messages")
    for index, message in enumerate(messages):
        for key in ("role", "content"):
            if not isinstance(message, Mapping) or not isinstance(message.get(key), str):
                raise InputError(f"Message {index} must have a text {key!r}.", param="messages")


def render(
    write: Callable[[Messages, Mapping[str, Any]], str],
    messages: Messages,
    special: Iterable[str],
    variables: Mapping[str, Any],
    tools: Sequence[Mapping[str, Any]] = (),
) -> list[tuple[str, bool]]:
    """Render a chat in pieces ``(text, is_special)``; only the template's own tokens are special."""
    check_messages(messages)
    choices = "|".join(map(re.escape, sorted(special, key=len, reverse=True)))  # the longest wins, as in tokenizers
    guard = find_free_character([messages, tools])

    def shield(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(f"(?={choices})", guard, value) if choices else value
        if isinstance(value, Mapping):
            return {shield(key): shield(inner) for key, inner in value.items()}
        return [shield(inner) for inner in value] if isinstance(value, Sequence) else value

    given = {"tools": shield(tools)} if tools else {}
    text = write(shield(messages), {**variables, **given})
    pieces = re.split(f"(?<!{guard})({choices})", text) if choices else [text]
    cleaned = ((piece.replace(guard, ""), index % 2 == 1) for index, piece in enumerate(pieces))
    return [(piece, is_special) for piece, is_special in cleaned if piece]


def find_free_character(given: Any) -> str:
    """Find a noncharacter that no text of messages and tools has."""
    used = set(json.dumps(given, ensure_ascii=False, default=str))
    for code in GUARDS:
        if chr(code) not in used:
            return chr(code)
    raise InputError("The messages use every Unicode noncharacter from U+FDD0 to U+FDEF.", param="messages")
