"""The bodies that clients send: OpenAI's fields, and our own in addition. Unknown fields are let through and logged."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from starr.errors import InputError
from starr.options import JSON, options_at

Body = TypeVar("Body", bound=BaseModel)
JSON_TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool}

MODEL = "A name that /v1/models lists; it may be left out."


class Open(BaseModel):
    """A body that may have more fields than we know."""

    model_config = ConfigDict(extra="allow")

    def extra_fields(self) -> dict[str, Any]:
        """What was sent beside the declared fields, nulls left out."""
        return {name: value for name, value in (self.model_extra or {}).items() if value is not None}


class StreamOptions(Open):
    """OpenAI's options of a stream."""

    include_usage: bool = Field(False, description="End the stream with a chunk that has the usage.")


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

    model: str | None = Field(None, description=MODEL)
    n: int | None = Field(None, description="Answers per prompt, with seeds seed, seed + 1, …")
    stop: str | list[str] | None = Field(None, description="End the answer before any of these texts.")
    stream: bool | None = Field(None, description="Send settled text as it grows, as server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="include_usage: end with a chunk of the usage.")
    ignore_eos: bool | None = Field(None, description="Never propose end-of-text, as eos=never.")
    diffusing: bool | None = Field(None, description="Stream the whole canvas; each frame replaces the last.")
    timeout: float | None = Field(None, description="Seconds until the request times out.")
    response_format: dict[str, Any] | None = Field(None, description="OpenAI's: text, json_object or json_schema.")
    choice: list[str] | None = Field(
        None, description="The answer is one of these texts; with logprobs, their probabilities from one forward."
    )
    structured_outputs: dict[str, Any] | None = Field(None, description="vLLM's: regex, choice, json or json_object.")

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

    messages: list[Message] = Field(description="The conversation: objects with a role and a content.")
    max_completion_tokens: int | None = Field(None, description="The same as max_tokens.")
    logprobs: bool | None = Field(None, description="Return each token's log confidence at the step that committed it.")
    top_logprobs: int | None = Field(None, description="How many of that step's likeliest tokens to list, up to 20.")


class CompletionBody(Decoding):
    """What ``/v1/completions`` takes."""

    prompt: str | list[str] | list[int] | list[list[int]] = Field(
        description="Text or token ids, or a list of prompts."
    )
    suffix: str | None = Field(None, description="Text after the answer, which then has exactly max_tokens tokens.")
    logprobs: int | None = Field(None, description="How many likeliest tokens to list beside each token, up to 20.")


class InfillBody(Decoding):
    """What ``/v1/infill`` takes."""

    text: str = Field(description="A text in which [MASK:n] stands for n tokens to fill in.")


class TokenizeBody(Open):
    """What ``/tokenize`` takes: a prompt or messages."""

    model: str | None = Field(None, description=MODEL)
    prompt: str | None = Field(None, description="A text.")
    messages: list[Message] | None = Field(None, description="Or a conversation, through the chat template.")


class DetokenizeBody(Open):
    """What ``/detokenize`` takes."""

    model: str | None = Field(None, description=MODEL)
    tokens: list[int] = Field(description="Token ids; special ones are shown, too.")


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
