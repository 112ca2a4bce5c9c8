"""The bodies that clients send: OpenAI's fields, and ours beside them. Unknown fields are let through and logged."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from starr.errors import InputError
from starr.options import JSON, options_at

Body = TypeVar("Body", bound=BaseModel)
JSON_TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool}

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("none",),
    "functions": ([],),
    "logit_bias": ({},),
    "min_p": (0,),
    "modalities": (["text"],),
    "moderation": (),
    "parallel_tool_calls": (False, True),
    "prediction": (),
    "presence_penalty": (0,),
    "reasoning_effort": ("none",),
    "repetition_penalty": (1,),
    "store": (False,),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "use_beam_search": (False,),
    "verbosity": (),
    "web_search_options": (),
}
"""Fields we know and do not serve, each with the values that ask for nothing."""

HARMLESS = {
    *("metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
    *("service_tier", "add_special_tokens"),
}
"""Fields that change no answer."""


class Open(BaseModel):
    """A body that may have more fields than we know."""

    model_config = ConfigDict(extra="allow")

    def extra_fields(self) -> dict[str, Any]:
        """What was sent beside the declared fields, nulls left out."""
        return {name: value for name, value in (self.model_extra or {}).items() if value is not None}


class StreamOptions(Open):
    """OpenAI's options of a stream."""

    include_usage: bool = False


def with_options(body: type[Body]) -> type[Body]:
    """Give a body one field for each option that the door of HTTP shows, in the order of ``starr.options``."""
    given: dict[str, Any] = {
        option.name: (JSON_TYPES[option.type] | None, Field(None, description=option.help))
        for option in options_at(JSON)
    }
    return create_model(body.__name__, __base__=body, __doc__=body.__doc__, __module__=body.__module__, **given)


@with_options
class Decoding(Open):
    """What every decoding endpoint takes; absent and null are the same. The options of decoding are fields, too."""

    model: str | None = None
    n: int | None = Field(None, description="answers per prompt, with seeds seed, seed + 1, …")
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    ignore_eos: bool | None = None
    diffusing: bool | None = Field(None, description="stream the whole canvas, each frame in place of the last")
    timeout: float | None = Field(None, description="seconds until the request is given up")
    response_format: dict[str, Any] | None = Field(None, description="text, json_object or json_schema, as OpenAI's")
    choice: list[str] | None = Field(
        None, description="the answer is one of these texts; with logprobs, of one forward"
    )
    structured_outputs: dict[str, Any] | None = Field(None, description="as vLLM's: regex, choice, json or json_object")

    def given(self) -> dict[str, Any]:
        """The options of decoding that were given, under their own names."""
        fields = {option.name: getattr(self, option.name) for option in options_at(JSON)}
        return {name: value for name, value in fields.items() if value is not None}


class Message(Open):
    """One turn of a conversation."""

    role: str
    content: str | list[dict[str, Any]] | None = None


class ChatBody(Decoding):
    """What ``/v1/chat/completions`` takes."""

    messages: list[Message]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


class CompletionBody(Decoding):
    """What ``/v1/completions`` takes."""

    prompt: str | list[str] | list[int] | list[list[int]]
    suffix: str | None = Field(None, description="text behind the answer, which then has max_tokens tokens")
    logprobs: int | None = None


class InfillBody(Decoding):
    """What ``/v1/infill`` takes."""

    text: str = Field(description="[MASK:n] stands for n tokens to fill in")


class TokenizeBody(Open):
    """What ``/tokenize`` takes: a prompt or messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None


class DetokenizeBody(Open):
    """What /detokenize takes."""

    model: str | None = None
    tokens: list[int]


def refuse_unserved(body: Open) -> list[str]:
    """Raise for a known field that we cannot serve; returns the names of unknown ones, for the log."""
    unknown = []
    for name, value in body.extra_fields().items():
        if name in NEUTRAL:
            if value not in NEUTRAL[name]:
                raise InputError(f"{name} is not supported.", hint="Leave it out.", param=name)
        elif name not in HARMLESS:
            unknown.append(name)
    return unknown


def plain(messages: list[Message]) -> list[dict[str, str]]:
    """Messages with text contents, as chat templates want them."""
    return [{"role": "system" if m.role == "developer" else m.role, "content": text_of(m)} for m in messages]


def text_of(message: Message) -> str:
    """The text of a message whose parts are all text."""
    if isinstance(message.content, str):
        return message.content
    parts = message.content or []
    for part in parts:
        if part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type")
            raise InputError(f"Messages may have parts of type text, got {kind!r}.", param="messages")
    return "".join(part["text"] for part in parts)
