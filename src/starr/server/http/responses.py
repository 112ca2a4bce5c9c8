"""``/v1/responses``: text in, text out, over the same chat as ``/v1/chat/completions``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field
from starlette.responses import JSONResponse, Response

from starr.errors import InputError
from starr.server.http.protocol import ChatBody, Decoding, Message

OWN = {"input", "instructions", "max_output_tokens", "text", "metadata", "include"}
"""Fields that a chat does not have."""

LOGPROBS = "message.output_text.logprobs"
"""The one value of ``include`` that adds something; the others ask for parts of what tools and reasoning leave."""


class ResponsesBody(Decoding):
    """OpenAI's body: ``input`` is text or messages, ``instructions`` a system message before them."""

    input: str | list[Message] = Field(description="A text, or a conversation.")
    instructions: str | None = Field(None, description="A system message before the input.")
    max_output_tokens: int | None = Field(None, description="Length of the canvas, in tokens.")
    text: dict[str, Any] | None = Field(None, description="format: of type text, json_object or json_schema.")
    metadata: dict[str, str] | None = Field(None, description="Comes back as it is.")
    include: list[str] | None = Field(None, description=f"{LOGPROBS}: as logprobs.")
    logprobs: bool | None = Field(None, description="Return each token's log confidence at the step that committed it.")
    top_logprobs: int | None = Field(None, description="How many of that step's likeliest tokens to list, up to 20.")


def as_chat(body: ResponsesBody) -> ChatBody:
    """The chat that this body asks for."""
    if body.n not in (None, 1):
        raise InputError(f"n must be 1 here, got {body.n}.", hint="Ask /v1/chat/completions for several.", param="n")
    if body.diffusing:
        raise InputError("diffusing is not supported here.", hint="Ask /v1/chat/completions.", param="diffusing")
    given = body.model_dump(exclude_none=True, exclude=OWN)
    asked = [Message(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    first = [] if body.instructions is None else [Message(role="system", content=body.instructions)]
    messages = [Message(role=m.role, content=texts_of(m)) for m in [*first, *asked]]
    if body.max_output_tokens is not None:
        given["max_tokens"] = body.max_output_tokens
    if (form := format_of(body)) is not None:
        given["response_format"] = form
    if body.logprobs is None and (body.top_logprobs or LOGPROBS in (body.include or ())):
        given["logprobs"] = True
    if body.stream:
        given["stream_options"] = {"include_usage": True}  # the last event has it
    return ChatBody(**given | {"messages": messages})


def names_of(body: ResponsesBody) -> dict[str, str]:
    """Fields of the chat → those of this body that they came from."""
    names = {"messages": "input"}
    if body.max_output_tokens is not None or "max_tokens" not in body.given():
        names["max_tokens"] = "max_output_tokens"
    if body.response_format is None:
        names["response_format"] = "text.format"
    return names


def format_of(body: ResponsesBody) -> dict[str, Any] | None:
    """``text.format`` as a chat's ``response_format``; None where it is not given."""
    text = {name: value for name, value in (body.text or {}).items() if value is not None}
    for name in sorted(text.keys() - {"format"}):
        raise InputError(f"text.{name} is not supported.", hint="Leave it out.", param=f"text.{name}")
    if "format" not in text:
        return None
    given, field = text["format"], "text.format"
    if not isinstance(given, Mapping):
        raise InputError(f"{field} must be an object with a type.", param=field)
    if body.response_format is not None:
        raise InputError(f"{field} and response_format are the same.", hint="Leave one out.", param=field)
    if given.get("type") != "json_schema":
        return dict(given)
    if not isinstance(given.get("schema"), Mapping):
        raise InputError(f"{field} needs a schema, an object.", param=field)
    return {"type": "json_schema", "json_schema": {"name": given.get("name"), "schema": given["schema"]}}


def texts_of(message: Message) -> str | list[dict[str, Any]] | None:
    """Content with the parts' types as a chat names them: input_text and output_text are text."""
    if not isinstance(message.content, list):
        return message.content
    kinds = {"input_text": "text", "output_text": "text"}
    return [part | {"type": kinds.get(part.get("type", ""), part.get("type"))} for part in message.content]


def told_back(body: ResponsesBody) -> dict[str, Any]:
    """The fields of a response that come back as they were given."""
    given = body.given()
    return {
        "instructions": body.instructions, "metadata": body.metadata or {}, "temperature": given.get("temperature"),
        "top_p": given.get("top_p"), "max_output_tokens": body.max_output_tokens, "top_logprobs": body.top_logprobs,
        "text": body.text or {"format": {"type": "text"}},
    }  # fmt: skip


def response_object(
    chat: dict[str, Any], told: dict[str, Any], message: dict[str, Any] | None, finish: str | None = None
) -> dict[str, Any]:
    """A chat's answer as a response: under way without a message, incomplete where the canvas was too short."""
    done = "incomplete" if finish == "length" else "completed"
    found = {
        "id": chat["id"].replace("chatcmpl", "resp"), "object": "response", "created_at": chat["created"],
        "status": done if message else "in_progress", "model": chat["model"], "output": [message] if message else [],
        "error": None, "incomplete_details": {"reason": "max_output_tokens"} if finish == "length" else None,
        "parallel_tool_calls": False, "tool_choice": "none", "tools": [],
    } | told  # fmt: skip
    if usage := chat.get("usage"):
        found["usage"] = {
            "input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"], "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
    return found | ({"starr": chat["starr"]} if "starr" in chat else {})


def message_object(chat: dict[str, Any], part: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    """The one message of a response; without a part it is only begun."""
    status = "in_progress" if part is None else "incomplete" if finish == "length" else "completed"
    id = chat["id"].replace("chatcmpl", "msg")
    content = [] if part is None else [part]
    return {"type": "message", "id": id, "status": status, "role": "assistant", "content": content}


def part_object(text: str, logprobs: list[dict[str, Any]]) -> dict[str, Any]:
    """The one part of the message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def logprobs_in(choice: dict[str, Any]) -> list[dict[str, Any]]:
    """The tokens' log probabilities in a choice or a chunk of a chat; none where none were asked for."""
    return (choice["logprobs"] or {"content": []})["content"]  # type: ignore[no-any-return]


def whole(answer: Response, body: ResponsesBody) -> Response:
    """A chat's answer that is not streamed, as a response."""
    chat = json.loads(bytes(answer.body))
    choice = chat["choices"][0]
    part, finish = part_object(choice["message"]["content"], logprobs_in(choice)), choice["finish_reason"]
    return JSONResponse(response_object(chat, told_back(body), message_object(chat, part, finish), finish))
