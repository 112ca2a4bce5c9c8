"""``/v1/responses``: text in, text out, over the same chat as ``/v1/chat/completions``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic import Field
from starlette.responses import JSONResponse, Response, StreamingResponse

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
    return ChatBody(**given | {"messages": messages})


def texts_of(message: Message) -> str | list[dict[str, Any]] | None:
    """Content with the parts' types as a chat names them: input_text and output_text are text."""
    if not isinstance(message.content, list):
        return message.content
    kinds = {"input_text": "text", "output_text": "text"}
    return [part | {"type": kinds.get(part.get("type", ""), part.get("type"))} for part in message.content]


def response_object(chat: dict[str, Any], text: str, status: str = "completed") -> dict[str, Any]:
    """A chat's answer as a response."""
    usage = chat.get("usage") or {}
    part = {"type": "output_text", "text": text, "annotations": []}
    id = chat["id"].replace("chatcmpl", "msg")
    message = {"type": "message", "id": id, "status": status, "role": "assistant", "content": [part]}
    found = {
        "id": chat["id"].replace("chatcmpl", "resp"), "object": "response", "created_at": chat["created"],
        "status": status, "model": chat["model"], "output": [message] if status == "completed" else [],
        "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
        "parallel_tool_calls": False, "tool_choice": "none", "tools": [], "temperature": None, "top_p": None,
    }  # fmt: skip
    if usage:
        found["usage"] = {
            "input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"], "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
    return found | ({"starr": chat["starr"]} if "starr" in chat else {})


def whole(answer: Response) -> Response:
    """A chat's answer, that is not streamed, as a response."""
    chat = json.loads(bytes(answer.body))
    return JSONResponse(response_object(chat, chat["choices"][0]["message"]["content"]))


def streamed(answer: StreamingResponse) -> Response:
    """A chat's stream as events of a response; its errors and its end are kept."""
    answer.body_iterator = events(answer.body_iterator)
    return answer


async def events(parts: Any) -> AsyncIterator[str]:
    """Lines of a chat's stream → lines of a response's."""
    text, number, head = "", 0, None

    def line(kind: str, **body: Any) -> str:
        nonlocal number
        number += 1
        full = {"type": kind, "sequence_number": number - 1} | body
        return f"event: {kind}\ndata: {json.dumps(full, ensure_ascii=False)}\n\n"

    async for part in parts:
        shown = part if isinstance(part, str) else bytes(part).decode()
        if not shown.startswith("data: {"):
            if not shown.startswith("data: "):
                yield shown
            continue
        chunk = json.loads(shown[len("data: ") :])
        if "error" in chunk:
            yield line("error", **chunk["error"])
            return
        if head is None:
            head = chunk
            yield line("response.created", response=response_object(chunk, "", "in_progress"))
        head = head | {key: chunk[key] for key in ("usage", "starr") if chunk.get(key)}
        delta = chunk["choices"][0]["delta"].get("content") if chunk["choices"] else None
        if delta:
            text += delta
            where = {"item_id": head["id"].replace("chatcmpl", "msg"), "output_index": 0, "content_index": 0}
            yield line("response.output_text.delta", delta=delta, logprobs=[], **where)
    if head is not None:
        where = {"item_id": head["id"].replace("chatcmpl", "msg"), "output_index": 0, "content_index": 0}
        yield line("response.output_text.done", text=text, logprobs=[], **where)
        yield line("response.completed", response=response_object(head, text))
