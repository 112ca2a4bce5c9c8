"""Between HTTP and the engine thread: loading, one request's way from body to answer, shutting down."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from fastapi import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from starr.decode.prompts.prepare import check_ids
from starr.decode.trace import Trace
from starr.errors import InputError, StarrError
from starr.model.load import Model
from starr.server.http.answers import AnswerShape
from starr.server.http.decide import decides
from starr.server.http.names import sent_names, told_as
from starr.server.http.outcome import FinishedRow, outcome_of, usage_of
from starr.server.http.parse import MOST_TRACED, Missing, ParsedBody, check_model
from starr.server.http.protocol import Decoding, DetokenizeBody, TokenizeBody
from starr.server.http.readers import Readers
from starr.server.http.streams import Stream
from starr.server.http.unserved import refuse_unserved
from starr.server.metrics import Metrics
from starr.server.queue.job import Gone, Job
from starr.server.queue.pool import Pool
from starr.server.settings import Settings

KEPT_TRACES = 8
log = logging.getLogger("starr.server")


class Loading(StarrError):
    """There is no model yet."""

    status = 503


class Unwell(StarrError):
    """The server answers, but it does not decode."""

    status = 503


@dataclass(frozen=True, slots=True)
class Ready:
    """What exists once the model is loaded."""

    model: Model
    pool: Pool
    metrics: Metrics
    since: int


class Service:
    """All that outlives a request."""

    def __init__(self, load: Callable[[], Model], settings: Settings) -> None:
        self.load, self.settings = load, settings
        self.failed: Exception | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self.traces: OrderedDict[str, Trace] = OrderedDict()
        self.readers = Readers(settings)
        self.loading = threading.Thread(target=self._load, name="starr-load", daemon=True)
        self._ready: Ready | None = None

    def begin(self) -> None:
        """Load the model in a thread, so that /health can answer meanwhile."""
        self.loading.start()

    def _load(self) -> None:
        try:
            model = self.load()
        except Exception as error:
            self.failed = error
            self.on_failure()
            return
        pool = Pool(model, self.settings)
        pool.start()
        self._ready = Ready(model, pool, Metrics(pool), int(time.time()))
        log.info("serving %s", model.name)

    def end(self) -> None:
        """Let running requests finish, and stop the engine threads."""
        self.readers.end()
        if self._ready is not None:
            self._ready.pool.stop(self.settings.grace)

    @property
    def ready(self) -> Ready:
        """What exists once the model is loaded; raises Loading before."""
        if self._ready is None:
            why = f"The model cannot be loaded: {self.failed}" if self.failed else "The model is still loading."
            raise Loading(why, hint="Try again later.")
        return self._ready

    def check_health(self) -> None:
        """Raise where an engine thread is dead or stuck."""
        trouble = self.ready.pool.trouble()
        if trouble:
            raise Unwell(trouble, hint="Start the server again.")

    async def answer(self, kind: str, body: Decoding, request: Request) -> Response:
        """Check, queue, and answer whole or as a stream."""
        ready = self.ready
        unknown = refuse_unserved(body)
        if unknown:
            log.info("ignored fields: %s", ", ".join(name[:40] for name in sorted(unknown)[:20]))
        began = monotonic()
        shape = AnswerShape(ready.model, kind)
        request.state.log["id"] = shape.id
        with told_as(sent_names(body)):
            if decides(body):
                return JSONResponse(await self.readers.decide(body, ready.model, shape))
            asked = await self.readers.parse(body, ready.model)
        job = Job(asked.requests, asked.timeout, asked.timeout - (monotonic() - began))
        ready.pool.submit(job)
        if asked.stream:
            return self.streamed(job, shape, asked, request)
        try:
            await unless_gone(finished(job), request)
        finally:
            outcomes = self.close(job, shape, request)
        return JSONResponse(shape.whole(job, outcomes, asked.logprobs))

    def streamed(self, job: Job, shape: AnswerShape, asked: ParsedBody, request: Request) -> Response:
        """The answer as a stream, which lets go of its job when it ends."""
        stream = Stream(job, shape, asked, self.settings.ping, self.settings.frame)
        return Streamed(stream, lambda: self.close(job, shape, request), asked.timeout + self.settings.ping)

    def close(self, job: Job, shape: AnswerShape, request: Request) -> list[FinishedRow]:
        """Let go of a job, however it ended: count it, keep its trace for a while, note its size in the access log."""
        metrics = self.ready.metrics
        self.ready.pool.release(job)
        if not job.over or job.failed:
            (metrics.failed if job.failed or job.late else metrics.left).inc()
            return []
        outcomes = [outcome_of(ticket, shape.model) for ticket in job.tickets]
        metrics.answered(job, outcomes)
        usage = usage_of(job, outcomes)
        request.state.log.update(prompt_tokens=usage["prompt_tokens"], tokens=usage["completion_tokens"])
        if outcomes[0].trace is not None:
            self.keep(shape.id, outcomes[0].trace)
        return outcomes

    def cells(self) -> int:
        """Size of the kept traces: positions times steps."""
        return sum(len(step.action) for trace in self.traces.values() for step in trace.steps)

    def keep(self, id: str, trace: Trace) -> None:
        """Keep a trace for the viewer; the oldest are dropped, so that all together are no larger than one may be."""
        self.traces[id] = trace
        while len(self.traces) > 1 and (len(self.traces) > KEPT_TRACES or self.cells() > MOST_TRACED):
            self.traces.popitem(last=False)

    def card(self, name: str | None = None) -> dict[str, Any]:
        """The model as /v1/models shows it."""
        ready = self.ready
        check_model(name, ready.model)
        about = {"id": ready.model.name, "object": "model", "created": ready.since, "owned_by": "starr"}
        return about | {"max_model_len": ready.model.spec.max_length}

    def tokenize(self, body: TokenizeBody, messages: list[dict[str, str]] | None) -> dict[str, Any]:
        """The tokens of a prompt or of messages."""
        model = self.ready.model
        check_model(body.model, model)
        if body.prompt is not None and messages is None:
            tokens = model.tokenizer.encode(body.prompt)
        elif messages is not None and body.prompt is None:
            tokens = model.tokenizer.chat(messages)
        else:
            raise InputError("Give either prompt or messages.", param="prompt")
        strings = [model.tokenizer.piece(token) for token in tokens]
        return {"count": len(tokens), "max_model_len": model.spec.max_length, "tokens": tokens, "token_strs": strings}

    def detokenize(self, body: DetokenizeBody) -> dict[str, Any]:
        """The text of tokens, special ones included."""
        model = self.ready.model
        check_model(body.model, model)
        check_ids(body.tokens, model.spec.shape.vocab_size)
        return {"prompt": model.tokenizer.decode(body.tokens, skip_special=False)}

    def trace_page(self, id: str) -> str:
        """The viewer's page for a traced answer, while it is kept."""
        from starr.viewer.html import page

        found = self.traces.get(id.rpartition("-")[2])
        if found is None:
            raise Missing(f"There is no trace {id!r}.", hint=f"The last {KEPT_TRACES} are kept.", param="id")
        return page([found.to_dict()], f"Every step of a run by {found.strategy}")


class Streamed(StreamingResponse):
    """A stream that lets go of its rows however it ends, at the latest after ``patience`` seconds."""

    def __init__(self, stream: Stream, closed: Callable[[], object], patience: float) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(stream.parts(), media_type="text/event-stream", headers=headers)
        self.closed, self.patience = closed, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(self.patience):  # decoding has its own deadline; this one is for the reader
                await super().__call__(scope, receive, send)
        except TimeoutError:
            log.info("closed a stream that nobody reads")
        finally:
            self.closed()


async def finished(job: Job) -> None:
    """Wait for the last row of a job."""
    async for _ in job.changes(ping=3600.0):
        pass


async def unless_gone(work: Awaitable[None], request: Request) -> None:
    """Do the work, or raise Gone when the client closes the connection first."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(left())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise Gone("The client closed the connection.")
        tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
