"""``/v1/responses``: text in, text out, over the same chat as ``/v1/chat/completions``."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field
from starlette.responses import JSONResponse, Response

from starr.errors import InputError
from starr.server.http.protocol import ChatBody, Decoding, Message


class ResponsesBody(Decoding):
    """OpenAI's body: ``input`` is text or messages, ``instructions`` a system message before them."""

    input: str | list[Message] = Field(description="A text, or a conversation.")
    instructions: str | None = Field(None, description="A system message before the input.")
    max_output_tokens: int | None = Field(None, description="Length of the canvas, in tokens.")


def as_chat(body: ResponsesBody) -> ChatBody:
    """The chat that this body asks for; fields that keep a conversation on the server are refused."""
    kept = body.extra_fields().get("previous_response_id")
    if kept is not None:
        raise InputError(
            "previous_response_id is not supported.", hint="Send the messages.", param="previous_response_id"
        )
    given = body.model_dump(exclude_none=True, exclude={"input", "instructions", "max_output_tokens"})
    asked = [Message(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    first = [] if body.instructions is None else [Message(role="system", content=body.instructions)]
    messages = [Message(role=m.role, content=texts_of(m)) for m in [*first, *asked]]
    if body.max_output_tokens is not None:
        given["max_tokens"] = body.max_output_tokens
    if body.stream:
        given["stream_options"] = {"include_usage": True}  # the last event has it
    return ChatBody(**given | {"messages": messages})


def texts_of(message: Message) -> str | list[dict[str, Any]] | None:
    """Content with the parts' types as a chat names them: input_text and output_text are text."""
    if not isinstance(message.content, list):
        return message.content
    kinds = {"input_text": "text", "output_text": "text"}
    return [part | {"type": kinds.get(part.get("type", ""), part.get("type"))} for part in message.content]


def response_object(chat: dict[str, Any], message: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    """A chat's answer as a response: under way without a message, incomplete where the canvas was too short."""
    done = "incomplete" if finish == "length" else "completed"
    found = {
        "id": chat["id"].replace("chatcmpl", "resp"), "object": "response", "created_at": chat["created"],
        "status": done if message else "in_progress", "model": chat["model"], "output": [message] if message else [],
        "error": None, "incomplete_details": {"reason": "max_output_tokens"} if finish == "length" else None,
        "instructions": None, "metadata": {}, "parallel_tool_calls": False, "tool_choice": "none", "tools": [],
        "temperature": None, "top_p": None,
    }  # fmt: skip
    if usage := chat.get("usage"):
        found["usage"] = {
            "input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"], "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
    return found | ({"starr": chat["starr"]} if "starr" in chat else {})


def message_object(chat: dict[str, Any], text: str | None, finish: str | None = None) -> dict[str, Any]:
    """The one message of a response; without a text it is only begun."""
    status = "in_progress" if text is None else "incomplete" if finish == "length" else "completed"
    content = [] if text is None else [part_object(text)]
    id = chat["id"].replace("chatcmpl", "msg")
    return {"type": "message", "id": id, "status": status, "role": "assistant", "content": content}


def part_object(text: str) -> dict[str, Any]:
    """The one part of the message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def whole(answer: Response) -> Response:
    """A chat's answer that is not streamed, as a response."""
    chat = json.loads(bytes(answer.body))
    choice = chat["choices"][0]
    message = message_object(chat, choice["message"]["content"], choice["finish_reason"])
    return JSONResponse(response_object(chat, message, choice["finish_reason"]))
