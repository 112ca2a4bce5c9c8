"""The bodies that clients send: OpenAI's fields, and our own in addition. A body says what its fields mean.

Options of decoding are fields, too; absent and null are the same. Other fields are refused or ignored by ``fields``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from starr.decode.prompts.prepare import Prompt
from starr.decode.prompts.tools import CHOICES, read_toolbox
from starr.errors import InputError
from starr.named import check_range
from starr.options import JSON, options_at

Body = TypeVar("Body", bound=BaseModel)
Texts = Annotated[list[str], Field(fail_fast=True)]  # a long list of another kind is left at its first item
Ids = Annotated[list[int], Field(fail_fast=True)]
ManyIds = Annotated[list[Ids], Field(fail_fast=True)]
JSON_TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool}
MODEL = "A name that /v1/models lists; it may be left out."
MOST_LIKELY = 20  # as OpenAI
FORMATS = ("text", "json_object", "json_schema")
STRUCTURED = {"regex": "regex", "choice": "choices", "json": "json_schema", "json_object": "json_schema"}


@dataclass(frozen=True, slots=True)
class Form:
    """The form that an answer must have: the field that asked for it, and the option of decoding that it is."""

    field: str
    option: str
    value: Any
    more: dict[str, Any] = dataclasses.field(default_factory=dict)  # other options that belong to it

    def options(self) -> dict[str, Any]:
        """The options of decoding that it sets."""
        return {self.option: self.value, **self.more}


class Open(BaseModel):
    """A body that may have more fields than we know."""

    model_config = ConfigDict(extra="allow")

    def extra_fields(self) -> dict[str, Any]:
        """What was sent beside the declared fields, nulls left out."""
        return {name: value for name, value in (self.model_extra or {}).items() if value is not None}


class StreamOptions(Open):
    """OpenAI's options of a stream."""

    include_usage: bool = Field(False, description="End the stream with a chunk that has the usage.")


def add_options(body: type[Body]) -> type[Body]:
    """Give a body one field for each option that the door of HTTP shows, in the order of ``starr.options``."""
    given: dict[str, Any] = {
        option.name: (JSON_TYPES[option.type] | None, Field(None, description=option.help))
        for option in options_at(JSON)
    }
    return create_model(body.__name__, __base__=body, __doc__=body.__doc__, __module__=body.__module__, **given)


@add_options
class Decoding(Open):
    """What every decoding endpoint takes."""

    kind: ClassVar[str]  # what an answer to it calls itself

    model: str | None = Field(None, description=MODEL)
    n: int | None = Field(None, description="Answers per prompt, with seeds seed, seed + 1, …")
    stop: str | list[str] | None = Field(None, description="End the answer before any of these texts.")
    stream: bool | None = Field(None, description="Send settled text as it grows, as server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="include_usage: end with a chunk of the usage.")
    logit_bias: dict[str, float] | None = Field(
        None, description="Token ids and what is added to their logits at every position, -100 to 100."
    )
    ignore_eos: bool | None = Field(None, description="Never propose end-of-text, as eos=never.")
    diffusing: bool | None = Field(None, description="Stream the whole canvas; each frame replaces the last.")
    timeout: float | None = Field(None, description="Seconds until the request times out.")
    response_format: dict[str, Any] | None = Field(None, description="OpenAI's: text, json_object or json_schema.")
    choice: list[str] | None = Field(
        None, description="The answer is one of these texts; with logprobs, their probabilities from one forward."
    )
    structured_outputs: dict[str, Any] | None = Field(None, description="vLLM's: regex, choice, json or json_object.")

    def given(self) -> dict[str, Any]:
        """The options of decoding that were given; the form of the answer is not among them."""
        fields = {option.name: getattr(self, option.name) for option in options_at(JSON) if option.name != "regex"}
        fields |= {"logit_bias": self.logit_bias or None}
        given = {name: value for name, value in fields.items() if value is not None}
        return given | {"eos": "never"} if self.ignore_eos else given

    def prompts(self) -> Sequence[Prompt]:
        """The prompts."""
        raise NotImplementedError

    def names(self) -> dict[str, str]:
        """Options of decoding → the fields of this body that set them, where the two differ."""
        return {}

    def likely(self) -> int | None:
        """How many likely tokens are listed beside each token of the answer; None where no logprobs are wanted."""
        return None

    def forms(self) -> Iterator[Form]:
        """Every form that the answer must have."""
        yield from read_format(self.response_format, "response_format")
        yield from read_structured(self.structured_outputs)
        if (regex := getattr(self, "regex")) is not None:  # noqa: B009 -- a field that add_options adds
            yield Form("regex", "regex", regex)
        if self.choice is not None:
            yield Form("choice", "choices", self.choice)


def read_format(given: Mapping[str, Any] | None, field: str) -> Iterator[Form]:
    """OpenAI's response_format, if it asks for anything."""
    kind = "text" if given is None else given.get("type")
    if kind not in FORMATS:
        raise InputError(f"{field} must be of type {', '.join(FORMATS)}, got {kind!r}.", param=field)
    if given is None or kind == "text":
        return
    if kind == "json_object":
        yield Form(field, "json_schema", "object")
        return
    inner = given.get("json_schema")
    if not isinstance(inner, Mapping) or not isinstance(inner.get("schema"), Mapping):
        raise InputError(f"{field} needs json_schema with a schema, an object.", param=field)
    yield Form(field, "json_schema", dict(inner["schema"]))


def read_tools(tools: list[dict[str, Any]] | None, choice: str | dict[str, Any] | None) -> Iterator[Form]:
    """OpenAI's tools and tool_choice, if a call is possible."""
    if isinstance(choice, Mapping):
        inner = choice.get("function")
        choice = inner.get("name") if choice.get("type") == "function" and isinstance(inner, Mapping) else None
        if not isinstance(choice, str) or choice in CHOICES:
            rule = 'tool_choice as an object must be {"type": "function", "function": {"name": …}}.'
            raise InputError(rule, param="tool_choice")
    if read_toolbox(tools, choice or "auto") is not None:
        yield Form("tools", "tools", tools, {"tool_choice": choice or "auto"})


def read_structured(given: Mapping[str, Any] | None) -> Iterator[Form]:
    """vLLM's structured_outputs: one of regex, choice, json, json_object."""
    field = "structured_outputs"
    for name, value in (given or {}).items():
        if value is None or value is False:
            continue
        if name not in STRUCTURED:
            raise InputError(f"{field} has no {name!r}.", hint=f"Known: {', '.join(STRUCTURED)}.", param=field)
        yield Form(field, STRUCTURED[name], "object" if name == "json_object" else value)


class Message(Open):
    """One turn of a conversation."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[dict[str, Any]] | None = None  # of an assistant's turn
    tool_call_id: str | None = None  # the call whose result a turn of the role tool is


class LikelyTokens(Decoding):
    """A body with OpenAI's two fields for log probabilities in a conversation."""

    logprobs: bool | None = Field(None, description="Return each token's log confidence at the step that committed it.")
    top_logprobs: int | None = Field(None, description="How many of that step's likeliest tokens to list, up to 20.")

    def likely(self) -> int | None:
        check_range("top_logprobs", self.top_logprobs or 0, 0, MOST_LIKELY)
        if self.top_logprobs and not self.logprobs:
            raise InputError("top_logprobs needs logprobs.", param="top_logprobs")
        return (self.top_logprobs or 0) if self.logprobs else None


class ChatBody(LikelyTokens):
    """What ``/v1/chat/completions`` takes."""

    kind: ClassVar[str] = "chat.completion"
    messages: list[Message] = Field(description="The conversation: objects with a role and a content.")
    max_completion_tokens: int | None = Field(None, description="The same as max_tokens.")
    tools: list[dict[str, Any]] | None = Field(None, description="Functions that the answer may call.")
    tool_choice: str | dict[str, Any] | None = Field(
        None, description="auto: text or a call; required: a call; none: text; or an object that names the function."
    )

    def given(self) -> dict[str, Any]:
        most = self.max_completion_tokens
        return super().given() | ({} if most is None else {"max_tokens": most})

    def forms(self) -> Iterator[Form]:
        yield from super().forms()
        yield from read_tools(self.tools, self.tool_choice)

    def prompts(self) -> Sequence[Prompt]:
        return [read_messages(self.messages, "messages")]

    def names(self) -> dict[str, str]:
        most = {} if self.max_completion_tokens is None else {"max_tokens": "max_completion_tokens"}
        return {"prompt": "messages"} | most


class CompletionBody(Decoding):
    """What ``/v1/completions`` takes."""

    kind: ClassVar[str] = "text_completion"
    prompt: str | Texts | Ids | ManyIds = Field(description="Text or token ids, or a list of prompts.")
    suffix: str | None = Field(None, description="Text after the answer, which then has exactly max_tokens tokens.")
    logprobs: int | None = Field(None, description="How many likeliest tokens to list beside each token, up to 20.")

    def prompts(self) -> Sequence[Prompt]:
        if isinstance(self.prompt, str) or (self.prompt and isinstance(self.prompt[0], int)):
            return [self.prompt]
        if not self.prompt:
            raise InputError("The prompt must not be empty.", param="prompt")
        return self.prompt  # type: ignore[return-value]

    def likely(self) -> int | None:
        if self.logprobs is not None:
            check_range("logprobs", self.logprobs, 0, MOST_LIKELY)
        return self.logprobs


class InfillBody(Decoding):
    """What ``/v1/infill`` takes."""

    kind: ClassVar[str] = "infill"
    text: str = Field(description="A text in which [MASK:n] stands for n tokens to fill in.")

    def prompts(self) -> Sequence[Prompt]:
        return [self.text]

    def names(self) -> dict[str, str]:
        return {"prompt": "text"}


class TokenizeBody(Open):
    """What ``/tokenize`` takes: a prompt or messages."""

    model: str | None = Field(None, description=MODEL)
    prompt: str | None = Field(None, description="A text.")
    messages: list[Message] | None = Field(None, description="Or a conversation, through the chat template.")

    def content(self) -> Prompt:
        """The text or the messages."""
        if (self.prompt is None) == (self.messages is None):
            raise InputError("Give either prompt or messages.", param="prompt")
        return self.prompt if self.messages is None else read_messages(self.messages, "messages")  # type: ignore[return-value]


class DetokenizeBody(Open):
    """What ``/detokenize`` takes."""

    model: str | None = Field(None, description=MODEL)
    tokens: Ids = Field(description="Token ids; special ones are shown, too.")


def read_messages(messages: list[Message], field: str) -> list[dict[str, Any]]:
    """Messages with text contents, as chat templates want them; calls and their results are among them."""
    roles = {"developer": "system"}
    told = []
    for message in messages:
        calls = {"tool_calls": message.tool_calls, "tool_call_id": message.tool_call_id}
        said: dict[str, Any] = {"role": roles.get(message.role, message.role), "content": read_content(message, field)}
        told.append(said | {name: value for name, value in calls.items() if value})
    return told


def read_content(message: Message, field: str) -> str:
    """The text of a message whose parts are all text."""
    if isinstance(message.content, str):
        return message.content
    kinds = ("text", "input_text", "output_text") if field == "input" else ("text",)
    for part in message.content or []:
        if part.get("type") not in kinds or not isinstance(part.get("text"), str):
            raise InputError(f"Messages may have parts of type text, got {part.get('type')!r}.", param=field)
    return "".join(part["text"] for part in message.content or [])
