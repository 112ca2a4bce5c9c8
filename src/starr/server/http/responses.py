"""``/v1/responses``: the body means a conversation, and the writer shows the answer as OpenAI's response."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import Field

from starr.decode.prompts.prepare import Prompt
from starr.errors import InputError
from starr.server.http.answers import AnswerWriter, Chance, FinishedJob, Piece
from starr.server.http.bodies import ChatBody, Form, LikelyTokens, Message, read_format, read_messages

LOGPROBS = "message.output_text.logprobs"
"""The one value of ``include`` that adds something; the others ask for parts of what tools and reasoning leave."""


class ResponsesBody(LikelyTokens):
    """OpenAI's body: ``input`` is text or messages, ``instructions`` a system message before them."""

    kind: ClassVar[str] = ChatBody.kind
    input: str | list[Message] = Field(description="A text, or a conversation.")
    instructions: str | None = Field(None, description="A system message before the input.")
    max_output_tokens: int | None = Field(None, description="Length of the canvas, in tokens.")
    text: dict[str, Any] | None = Field(None, description="format: of type text, json_object or json_schema.")
    metadata: dict[str, str] | None = Field(None, description="Comes back as it is.")
    include: list[str] | None = Field(None, description=f"{LOGPROBS}: as logprobs.")

    def given(self) -> dict[str, Any]:
        most = self.max_output_tokens
        return super().given() | ({} if most is None else {"max_tokens": most})

    def prompts(self) -> Sequence[Prompt]:
        if self.n not in (None, 1):
            rule = f"n must be 1 here, got {self.n}."
            raise InputError(rule, hint="Ask /v1/chat/completions for several.", param="n")
        if self.diffusing:
            raise InputError("diffusing is not supported here.", hint="Ask /v1/chat/completions.", param="diffusing")
        asked = [Message(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        first = [] if self.instructions is None else [Message(role="system", content=self.instructions)]
        return [read_messages([*first, *asked], "input")]

    def names(self) -> dict[str, str]:
        own = self.max_output_tokens is not None or "max_tokens" not in self.given()
        return {"prompt": "input"} | ({"max_tokens": "max_output_tokens"} if own else {})

    def likely(self) -> int | None:
        wanted = self.logprobs is None and (self.top_logprobs or LOGPROBS in (self.include or ()))
        return LikelyTokens.likely(self.model_copy(update={"logprobs": True}) if wanted else self)

    def forms(self) -> Iterator[Form]:
        given, field = self.text_format(), "text.format"
        if given is not None and self.response_format is not None:
            raise InputError(f"{field} and response_format are the same.", hint="Leave one out.", param=field)
        yield from read_format(given, field)
        yield from super().forms()

    def text_format(self) -> dict[str, Any] | None:
        """``text.format`` as a chat's ``response_format``; None where it is not given."""
        text, field = {name: value for name, value in (self.text or {}).items() if value is not None}, "text.format"
        for name in sorted(text.keys() - {"format"}):
            raise InputError(f"text.{name} is not supported.", hint="Leave it out.", param=f"text.{name}")
        if "format" not in text:
            return None
        given = text["format"]
        if not isinstance(given, Mapping):
            raise InputError(f"{field} must be an object with a type.", param=field)
        if given.get("type") == "json_schema" and not isinstance(given.get("schema"), Mapping):
            raise InputError(f"{field} needs a schema, an object.", param=field)
        return {**given, "json_schema": {"schema": given.get("schema")}}

    def echoed(self) -> dict[str, Any]:
        """The fields of a response that come back as they were given."""
        given, same = self.given(), ("instructions", "max_output_tokens", "top_logprobs")
        back = {name: getattr(self, name) for name in same} | {"metadata": self.metadata or {}}
        back |= {name: given.get(name) for name in ("temperature", "top_p")}
        return back | {"text": self.text or {"format": {"type": "text"}}}


@dataclass(slots=True)
class ResponseWriter(AnswerWriter):
    """Writes one response: a message with one part of text. A stream opens and closes them, with deltas in between."""

    echoed: dict[str, Any] = field(default_factory=dict)
    text: str = ""  # what a stream has said so far
    chances: list[Chance] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def whole(self, answer: FinishedJob) -> dict[str, Any]:
        row = answer.rows[0]
        part = self.part(row.text, row.chances or [])
        return self.response(self.message(part, row.finish_reason), answer)

    def open(self, rows: int) -> Iterator[str]:
        yield self.event("response.created", response=self.response(None))
        yield self.event("response.in_progress", response=self.response(None))
        yield self.event("response.output_item.added", output_index=0, item=self.message(None))
        yield self.event("response.content_part.added", part=self.part("", []), **self.place)

    def tell(self, piece: Piece) -> Iterator[str]:
        if piece.text:
            self.text += piece.text
            self.chances += piece.chances or []
            new = self.entries(piece.chances or [])
            yield self.event("response.output_text.delta", delta=piece.text, logprobs=new, **self.place)

    def close(self, answer: FinishedJob) -> Iterator[str]:
        part = self.part(self.text, self.chances)
        message = self.message(part, answer.rows[0].finish_reason)
        response = self.response(message, answer)
        yield self.event("response.output_text.done", text=self.text, logprobs=part["logprobs"], **self.place)
        yield self.event("response.content_part.done", part=part, **self.place)
        yield self.event("response.output_item.done", output_index=0, item=message)
        yield self.event(f"response.{response['status']}", response=response)

    def fail(self, error: dict[str, Any]) -> str:
        return self.event("error", **error["error"])

    def event(self, kind: str, **body: Any) -> str:
        """One event, numbered."""
        full = {"type": kind, "sequence_number": next(self.numbers)} | body
        return f"event: {kind}\ndata: {json.dumps(full, ensure_ascii=False)}\n\n"

    @property
    def place(self) -> dict[str, Any]:
        """Where a text belongs: the first part of the first message."""
        return {"item_id": f"msg-{self.id}", "output_index": 0, "content_index": 0}

    def response(self, message: dict[str, Any] | None, answer: FinishedJob | None = None) -> dict[str, Any]:
        """The response: under way without a message, incomplete where the canvas was too short."""
        status = "in_progress" if message is None else message["status"]
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        found = {
            "id": f"resp-{self.id}", "object": "response", "created_at": self.created, "status": status,
            "model": self.model.name, "output": [] if message is None else [message], "error": None,
            "incomplete_details": details, "parallel_tool_calls": False, "tool_choice": "none", "tools": [],
        } | self.echoed  # fmt: skip
        if answer is None:
            return found
        usage = answer.usage
        found["usage"] = {
            "input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"], "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
        return found | {"starr": answer.figures}

    def message(self, part: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
        """The one message; without a part it is only begun."""
        status = "in_progress" if part is None else "incomplete" if finish == "length" else "completed"
        head = {"type": "message", "id": f"msg-{self.id}", "status": status, "role": "assistant"}
        return head | {"content": [] if part is None else [part]}

    def part(self, text: str, chances: list[Chance]) -> dict[str, Any]:
        """The one part of the message."""
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": self.entries(chances)}

    def entries(self, chances: list[Chance]) -> list[dict[str, Any]]:
        """Log probabilities of tokens."""
        return self.logprobs(chances, 0)["content"]  # type: ignore[no-any-return]
