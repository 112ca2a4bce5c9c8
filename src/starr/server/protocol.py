"""The bodies that clients send: OpenAI's fields, and ours beside them. Unknown fields are let through and logged."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from starr.errors import InputError

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
    "response_format": ({"type": "text"},),
    "store": (False,),
    "suffix": ("",),
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
    include_usage: bool = False


class Decoding(Open):
    """What every decoding endpoint takes; absent and null are the same."""

    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = Field(None, description="0, the default, is greedy")
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    n: int | None = Field(None, description="answers per prompt, with seeds seed, seed + 1, …")
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    ignore_eos: bool | None = None
    strategy: str | None = Field(None, description="name:option=value,option=value")
    cache: str | None = Field(None, description="name:option=value,option=value")
    block_length: int | None = None
    max_forwards: int | None = None
    enforce: str | None = None
    guidance: float | None = None
    eos: str | None = None
    ice: str | None = None
    stop_rule: str | None = Field(None, description="when to end early: name:option=value, several joined by +")
    diffusing: bool | None = Field(None, description="stream the whole canvas, each frame in place of the last")
    trace: bool | None = Field(None, description="return every step")
    timeout: float | None = Field(None, description="seconds until the request is given up")


class Message(Open):
    role: str
    content: str | list[dict[str, Any]] | None = None


class ChatBody(Decoding):
    messages: list[Message]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


class CompletionBody(Decoding):
    prompt: str | list[str] | list[int] | list[list[int]]
    logprobs: int | None = None


class InfillBody(Decoding):
    text: str = Field(description="[MASK:n] stands for n tokens to fill in")


class TokenizeBody(Open):
    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None


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
    if isinstance(message.content, str):
        return message.content
    parts = message.content or []
    for part in parts:
        if part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type")
            raise InputError(f"Messages may have parts of type text, got {kind!r}.", param="messages")
    return "".join(part["text"] for part in parts)
