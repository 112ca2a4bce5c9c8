"""The stream of ``/v1/responses``: a chat's stream, event by event as OpenAI's clients expect a response's."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response, StreamingResponse

from starr.server.http.responses import (
    ResponsesBody,
    logprobs_in,
    message_object,
    part_object,
    response_object,
    told_back,
)

HEAD = "data: "


def streamed(answer: StreamingResponse, body: ResponsesBody) -> Response:
    """A chat's stream as events of a response; its errors and its end are kept."""
    answer.body_iterator = events(answer.body_iterator, told_back(body))
    return answer


async def events(parts: Any, told: dict[str, Any]) -> AsyncIterator[str]:
    """Lines of a chat's stream → lines of a response's."""
    writer = EventWriter(told)
    async for part in parts:
        shown = part if isinstance(part, str) else bytes(part).decode()
        if not shown.startswith(HEAD):
            yield shown  # a sign of life
        elif shown.startswith(HEAD + "{"):
            chunk = json.loads(shown[len(HEAD) :])
            if "error" in chunk:
                yield writer.line("error", **chunk["error"])
                return
            for line in writer.heard(chunk):
                yield line
    for line in writer.end():
        yield line


@dataclass(slots=True)
class EventWriter:
    """What was said so far: the first chunk with the figures of later ones, the text, and why it ended."""

    told: dict[str, Any]  # what comes back as it was given
    chat: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    logprobs: list[dict[str, Any]] = field(default_factory=list)
    finish: str | None = None
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def line(self, kind: str, **body: Any) -> str:
        """One event, numbered."""
        full = {"type": kind, "sequence_number": next(self.numbers)} | body
        return f"event: {kind}\ndata: {json.dumps(full, ensure_ascii=False)}\n\n"

    def heard(self, chunk: dict[str, Any]) -> Iterator[str]:
        """Events for one chunk of the chat."""
        if not self.chat:
            self.chat = chunk
            yield from self.begin()
        self.chat = self.chat | {key: chunk[key] for key in ("usage", "starr") if chunk.get(key)}
        for choice in chunk["choices"]:
            self.finish = choice["finish_reason"] or self.finish
            if delta := choice["delta"].get("content"):
                self.text += delta
                new = logprobs_in(choice)
                self.logprobs += new
                yield self.line("response.output_text.delta", delta=delta, logprobs=new, **self.place())

    def begin(self) -> Iterator[str]:
        """A response, its message and the message's part are opened, in this order."""
        yield self.line("response.created", response=response_object(self.chat, self.told, None))
        yield self.line("response.in_progress", response=response_object(self.chat, self.told, None))
        yield self.line("response.output_item.added", output_index=0, item=message_object(self.chat, None))
        yield self.line("response.content_part.added", part=part_object("", []), **self.place())

    def end(self) -> Iterator[str]:
        """They are closed in the other order, each with all it holds."""
        if not self.chat:
            return
        part = part_object(self.text, self.logprobs)
        message = message_object(self.chat, part, self.finish)
        response = response_object(self.chat, self.told, message, self.finish)
        yield self.line("response.output_text.done", text=self.text, logprobs=self.logprobs, **self.place())
        yield self.line("response.content_part.done", part=part, **self.place())
        yield self.line("response.output_item.done", output_index=0, item=message)
        yield self.line(f"response.{response['status']}", response=response)

    def place(self) -> dict[str, Any]:
        """Where a text belongs: the first part of the first message."""
        return {"item_id": self.chat["id"].replace("chatcmpl", "msg"), "output_index": 0, "content_index": 0}
