"""Server-sent events: settled text as it grows, or whole canvases, or records of steps."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

from starr.decode.result import Event
from starr.decode.text import before_stop, within
from starr.decode.trace import record_dict
from starr.errors import StarrError
from starr.server.http.answers import AnswerShape
from starr.server.http.errors import error_body, error_object
from starr.server.http.outcome import (
    chances_at,
    figures_of,
    outcome_of,
    tokens_at,
    usage_of,
)
from starr.server.http.parse import ParsedBody
from starr.server.queue.job import Job, Ticket
from starr.viewer.words import MASK

if TYPE_CHECKING:
    from starr.model.load import Model

log = logging.getLogger("starr.server")
PING = ": ping\n\n"
DONE = "data: [DONE]\n\n"


@dataclass(slots=True)
class Sent:
    """What a stream has already said about one row."""

    text: str = ""
    tokens: int = 0
    steps: int = 0
    over: bool = False


@dataclass(slots=True)
class Stream:
    """One streamed answer; ``parts`` yields its lines."""

    job: Job
    shape: AnswerShape
    asked: ParsedBody
    ping: float
    frame: float
    sent: list[Sent] = field(init=False)

    def __post_init__(self) -> None:
        self.sent = [Sent() for _ in self.job.tickets]

    async def parts(self) -> AsyncIterator[str]:
        """Lines of the stream; an error after the first line is a line of its own, as the official client expects."""
        if self.shape.chat:
            for index in range(len(self.sent)):
                yield self.line(self.shape.chunk(index, "", first=True))
        try:
            async for news in self.job.changes(self.ping):
                if not news:
                    yield PING
                    continue
                for index, ticket in enumerate(self.job.tickets):
                    for chunk in self.news(index, ticket):
                        yield self.line(chunk)
                if self.asked.diffusing:
                    await asyncio.sleep(self.frame)
            if self.asked.include_usage:
                outcomes = [outcome_of(ticket, self.shape.model) for ticket in self.job.tickets]
                head = self.shape.head(self.shape.chunk_kind)
                yield self.line(head | {"choices": [], "usage": usage_of(self.job, outcomes)})
        except StarrError as error:
            yield self.line(error_body(error))
            return
        except Exception as error:
            log.exception("a stream failed")
            yield self.line(error_object(f"The server failed ({type(error).__name__}).", 500))
            return
        yield DONE

    def line(self, body: dict[str, Any]) -> str:
        """An object as one event of the stream."""
        if self.asked.include_usage and "usage" not in body and "error" not in body:
            body = body | {"usage": None}
        return f"data: {json.dumps(body, ensure_ascii=False, allow_nan=False)}\n\n"

    def news(self, index: int, ticket: Ticket) -> Iterator[dict[str, Any]]:
        """Chunks for what happened to a row since the last call."""
        sent, over, event = self.sent[index], ticket.over, ticket.event
        if sent.over or event is None:
            return
        yield from self.records(index, ticket)
        if over:
            sent.over = True
            yield from self.last(index, ticket)
        elif self.asked.diffusing:
            yield self.shape.chunk(index, frame_text(ticket, event, self.shape.model), **canvas_of(event))
        else:
            yield from self.delta(index, event.text, event)

    def delta(self, index: int, text: str, event: Event) -> Iterator[dict[str, Any]]:
        """A chunk with the text that is new, if any."""
        sent = self.sent[index]
        new = text[len(sent.text) :]
        if not new:
            return
        yield self.shape.chunk(index, new, logprobs=self.logprobs(index, text, event))
        sent.text = text

    def logprobs(self, index: int, text: str, event: Event) -> dict[str, Any] | None:
        """Of the tokens whose first byte is new in ``text``."""
        if self.asked.logprobs is None:
            return None
        sent, places = self.sent[index], event.places
        start, sent.tokens = sent.tokens, within(tokens_at(event, places), text, self.shape.model)
        new = places[start : sent.tokens]
        return self.shape.logprobs(chances_at(event, new, self.asked.logprobs), len(sent.text))

    def last(self, index: int, ticket: Ticket) -> Iterator[dict[str, Any]]:
        """The rest of the text, and the chunk that says why it ended and what it cost."""
        result = outcome_of(ticket, self.shape.model)
        assert ticket.event is not None
        more: dict[str, Any] = {"starr": figures_of(self.job, [result])}
        if self.asked.diffusing:
            yield self.shape.chunk(index, result.text, **canvas_of(ticket.event))
        else:
            yield from self.delta(index, result.text, ticket.event)
        if result.trace is not None:
            more["trace"] = {k: v for k, v in result.trace.to_dict().items() if k != "steps"}
        yield self.shape.chunk(index, None, finish_reason=result.finish_reason, **more)

    def records(self, index: int, ticket: Ticket) -> Iterator[dict[str, Any]]:
        """A chunk for every step that was not reported yet, where a trace was asked for."""
        sent = self.sent[index]
        while sent.steps < len(ticket.steps):
            record = record_dict(ticket.steps[sent.steps].record())
            sent.steps += 1
            yield self.shape.chunk(index, None, record=record)


def frame_text(ticket: Ticket, event: Event, model: Model) -> str:
    """The whole canvas as text, up to a held end-of-text or a stop string; masked positions show as MASK."""
    ends, stops = ticket.request.ends, ticket.request.options.stop
    cells = list(zip(event.tokens, event.masked, strict=True))
    if ends:
        cells = list(takewhile(lambda cell: cell[1] or cell[0] not in model.spec.eos_ids, cells))
    text = ""
    for masked, run in groupby(cells, key=lambda cell: cell[1]):
        tokens = [token for token, _ in run]
        text += MASK * len(tokens) if masked else model.tokenizer.decode(tokens)
    return before_stop(text, stops)


def canvas_of(event: Event) -> dict[str, Any]:
    """The fields of a frame: it replaces what came before."""
    return {"diffusing": True, "canvas": event.canvas}
