"""Streams: settled text as it grows, or whole canvases, or records of steps. A writer makes lines of the pieces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from starr.decode.prompts.tools import Call, split_answer
from starr.decode.result import Event
from starr.decode.text import before_stop, within
from starr.decode.trace import record_dict
from starr.errors import StarrError
from starr.server.errors import error_body, error_object
from starr.server.http.answers import AnswerWriter, Chance, Piece, answer_job, finish_row, read_chances
from starr.server.http.read import Asked
from starr.server.queue.job import Job, Ticket
from starr.server.settings import PING
from starr.viewer.words import MASK

if TYPE_CHECKING:
    from starr.model.load import Model

log = logging.getLogger("starr.server")


@dataclass(slots=True)
class Sent:
    """What a stream has already said about one row."""

    text: str = ""
    call: Call | None = None
    tokens: int = 0
    steps: int = 0
    over: bool = False


@dataclass(slots=True)
class Stream:
    """One streamed answer; ``parts`` yields its lines."""

    job: Job
    writer: AnswerWriter
    asked: Asked
    ping: float
    frame: float
    sent: list[Sent] = field(init=False)

    def __post_init__(self) -> None:
        self.sent = [Sent() for _ in self.job.tickets]

    async def parts(self) -> AsyncIterator[str]:
        """Lines of the stream; an error after the first line is a line of its own, as the official client expects."""
        for line in self.writer.open(len(self.sent)):
            yield line
        try:
            async for news in self.job.changes(self.ping):
                if not news:
                    yield PING.decode()
                    continue
                for index, ticket in enumerate(self.job.tickets):
                    for piece in self.news(index, ticket):
                        for line in self.writer.tell(piece):
                            yield line
                        await asyncio.sleep(0)  # many pieces at once must not keep the event loop from others
                if self.asked.diffusing:
                    await asyncio.sleep(self.frame)
            rows = [finish_row(ticket, self.model) for ticket in self.job.tickets]
            for line in self.writer.close(answer_job(self.job, rows)):
                yield line
        except StarrError as error:
            yield self.writer.fail(error_body(error))
        except Exception as error:
            log.exception("a stream failed")
            yield self.writer.fail(error_object(f"The server failed ({type(error).__name__}).", 500))

    @property
    def model(self) -> Model:
        """The model that decodes it."""
        return self.writer.model

    def news(self, index: int, ticket: Ticket) -> Iterator[Piece]:
        """Pieces for what happened to a row since the last call."""
        sent, over, event = self.sent[index], ticket.over, ticket.event
        if sent.over or event is None:
            return
        while sent.steps < len(ticket.steps):
            yield Piece(index, more={"record": record_dict(ticket.steps[sent.steps].record())})
            sent.steps += 1
        if over:
            sent.over = True
            yield from self.last(index, ticket, event)
        elif self.asked.diffusing:
            yield Piece(index, write_frame(ticket, event, self.model), more=show_canvas(ticket, event))
        else:
            yield from self.delta(index, event.text, event)

    def delta(self, index: int, text: str, event: Event) -> Iterator[Piece]:
        """A piece with the text that is new, if any; two with the name and the new arguments of a call."""
        sent = self.sent[index]
        told, call = split_answer(text, self.job.tickets[index].request.options.toolbox)
        if call is not None:
            before = sent.call or Call(call.name, "", False)
            if sent.call is None:
                yield Piece(index, call=before)
            if len(call.arguments) > len(before.arguments):
                yield Piece(index, call=Call("", call.arguments[len(before.arguments) :], False))
            sent.call = call
        elif new := told[len(sent.text) :]:
            yield Piece(index, new, chances=self.chances(sent, told, event), offset=len(sent.text))
            sent.text = told

    def chances(self, sent: Sent, text: str, event: Event) -> list[Chance] | None:
        """Of the tokens whose first byte is new in ``text``, where logprobs are wanted."""
        if self.asked.logprobs is None:
            return None
        start = sent.tokens
        sent.tokens = within([event.tokens[place] for place in event.places], text, self.model)
        return read_chances(event, event.places[start : sent.tokens], self.asked.logprobs, self.model)

    def last(self, index: int, ticket: Ticket, event: Event) -> Iterator[Piece]:
        """The rest of the text, and the piece that says why it ended and what it cost."""
        row = finish_row(ticket, self.model)
        if self.asked.diffusing:
            yield Piece(index, row.text, more=show_canvas(ticket, event))
        else:
            yield from self.delta(index, event.text, event)
        more: dict[str, Any] = {"starr": answer_job(self.job, [row]).figures}
        if row.trace is not None:
            more["trace"] = {name: value for name, value in row.trace.to_dict().items() if name != "steps"}
        yield Piece(index, finish_reason=row.finish_reason, more=more)


def write_frame(ticket: Ticket, event: Event, model: Model) -> str:
    """The whole canvas as text, up to a held end-of-text or a stop string; masked positions show as MASK."""
    cells = list(zip(event.tokens, event.masked, strict=True))
    if ticket.request.ends:
        cells = list(takewhile(lambda cell: cell[1] or cell[0] not in model.spec.eos_ids, cells))
    text = ""
    for masked, run in groupby(cells, key=lambda cell: cell[1]):
        tokens = [token for token, _ in run]
        text += MASK * len(tokens) if masked else model.tokenizer.decode(tokens)
    return before_stop(text, ticket.request.options.stop)


def show_canvas(ticket: Ticket, event: Event) -> dict[str, Any]:
    """The fields of a frame, which replaces what came before, and whether held tokens may still be revoked."""
    options = ticket.request.options
    return {"diffusing": True, "canvas": event.canvas, "revokes": options.strategy.revokes() or options.verify > 0}


class Streamed(StreamingResponse):
    """A stream that lets go of its rows however it ends, at the latest after ``patience`` seconds."""

    def __init__(self, stream: Stream, close: Callable[[], object], patience: float) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(stream.parts(), media_type="text/event-stream", headers=headers)
        self.close, self.patience = close, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["streams"] = True  # so that the connection may send a ping of its own
        try:
            async with asyncio.timeout(self.patience):  # decoding has its own deadline; this one is for the reader
                await super().__call__(scope, receive, send)
        except TimeoutError:
            log.info("closed a stream that nobody reads")
        finally:
            self.close()
