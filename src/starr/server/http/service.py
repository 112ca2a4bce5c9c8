"""Between HTTP and the engine threads: loading, one request's way from body to answer, shutting down.

Requests are read in threads. What a client can make long has threads of its own, so that others do not wait for it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from fastapi import Request
from starlette.responses import JSONResponse, Response

from starr.decode.prompts.prepare import Prompt
from starr.errors import InputError
from starr.model.load import Model
from starr.server.errors import Gone, Late, Unavailable, rename_field
from starr.server.http.answers import AnswerWriter, answer_choice, answer_job, dump, finish_row
from starr.server.http.bodies import Decoding, DetokenizeBody, TokenizeBody
from starr.server.http.fields import refuse_fields
from starr.server.http.pages import KeptTraces
from starr.server.http.read import Asked, build_rows, check_model, detokenize, is_long, read_body, tokenize
from starr.server.http.responses import ResponsesBody, ResponseWriter
from starr.server.http.streams import Stream, Streamed
from starr.server.metrics import Metrics
from starr.server.queue.job import Job
from starr.server.queue.pool import Pool
from starr.server.settings import Settings

IGNORED = "X-Starr-Ignored-Fields"
PLANNERS = 2  # threads for ordinary requests, and for forms whose automaton is kept
COMPILERS = 2  # for new forms and for long prompts
CHOOSERS = 2  # for choices with probabilities, which is a forward
T = TypeVar("T")
log = logging.getLogger("starr.server")


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
        self.traces = KeptTraces()
        self.planners = ThreadPoolExecutor(PLANNERS, thread_name_prefix="starr-plan")
        self.compilers = ThreadPoolExecutor(COMPILERS, thread_name_prefix="starr-compile")
        self.choosers = ThreadPoolExecutor(CHOOSERS, thread_name_prefix="starr-choose")
        self.automata: WeakValueDictionary[str, Any] = WeakValueDictionary()  # by form, while they are kept
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
        """Begin nothing new, let running requests finish, and stop the engine threads."""
        for threads in (self.planners, self.compilers, self.choosers):
            threads.shutdown(wait=False, cancel_futures=True)
        if self._ready is not None:
            self._ready.pool.stop(self.settings.grace)

    @property
    def pending(self) -> int:
        """Rows that wait or are decoded."""
        return 0 if self._ready is None else self._ready.pool.running + self._ready.pool.waiting

    def hurry(self) -> None:
        """End running requests with what is settled."""
        if self._ready is not None:
            self._ready.pool.end_rows()

    @property
    def ready(self) -> Ready:
        """What exists once the model is loaded; raises Unavailable before."""
        if self._ready is None:
            why = f"The model cannot be loaded: {self.failed}" if self.failed else "The model is still loading."
            raise Unavailable(why, hint="Try again later.")
        return self._ready

    def check_health(self) -> None:
        """Raise where an engine thread is dead or stuck."""
        trouble = self.ready.pool.trouble()
        if trouble:
            raise Unavailable(trouble, hint="Start the server again.")

    async def answer(self, body: Decoding, request: Request) -> Response:
        """Answer, and name the fields that were ignored."""
        ignored = refuse_fields(body)
        response = await self.decode(body, request)
        if ignored:
            response.headers[IGNORED] = ", ".join(ignored)
        return response

    async def decode(self, body: Decoding, request: Request) -> Response:
        """Read, queue, and answer whole or as a stream."""
        began, ready = monotonic(), self.ready
        asked = read_body(body, ready.model, self.settings)
        writer = choose_writer(body, asked, ready.model)
        request.state.log["id"] = writer.id
        try:
            if asked.chooses:
                chosen = await self.within(asked.timeout, self.choosers, answer_choice, asked, ready.model)
                return JSONResponse(writer.whole(chosen))
            job = await self.build_job(asked, began)
        except InputError as error:
            raise rename_field(error, asked.names) from None
        ready.pool.submit(job)

        def close() -> None:
            self.close(job, writer.id, request.state.log)

        if asked.stream:
            stream = Stream(job, writer, asked, self.settings.ping, self.settings.frame)
            return Streamed(stream, close, asked.timeout + self.settings.ping)
        try:
            await finish(job, request)
        finally:
            close()
        if job.tickets[0].request.kept:  # a trace, or likely tokens: large enough to keep the event loop from others
            return await asyncio.to_thread(respond, job, writer, asked.logprobs)
        return respond(job, writer, asked.logprobs)

    async def build_job(self, asked: Asked, began: float) -> Job:
        """The rows of a request; a form without an automaton waits for the threads that compile."""
        form = write_form(asked)
        new = form is not None and form not in self.automata
        threads = self.compilers if new else self.choose_threads(*asked.prompts)
        rows = await self.within(asked.timeout, threads, build_rows, asked, self.ready.model, self.settings)
        if form is not None:
            self.automata[form] = rows[0].constraint
        return Job(rows, asked.timeout, asked.timeout - (monotonic() - began))

    def choose_threads(self, *prompts: Prompt) -> ThreadPoolExecutor:
        """The threads that read these prompts."""
        return self.compilers if any(is_long(prompt, self.ready.model) for prompt in prompts) else self.planners

    async def within(
        self, seconds: float, threads: ThreadPoolExecutor, work: Callable[..., T], *arguments: object
    ) -> T:
        """Do the work in one of the threads; raise Late after as many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)
        except TimeoutError:
            rule = f"The request was not read within {seconds:g} seconds."
            raise Late(rule, hint="Send a smaller request.") from None

    def close(self, job: Job, id: str, entry: dict[str, Any]) -> None:
        """Let go of a job, however it ended: count it, keep its trace for a while, note its size in the access log."""
        metrics = self.ready.metrics
        self.ready.pool.release(job)
        if not job.over or job.failed:
            (metrics.failed if job.failed or job.late else metrics.left).inc()
            return
        rows = [finish_row(ticket, self.ready.model) for ticket in job.tickets]
        metrics.count(job, rows)
        answer = answer_job(job, rows)
        entry.update(prompt_tokens=answer.prompt_tokens, tokens=answer.usage["completion_tokens"])
        if rows[0].trace is not None:
            self.traces.keep(id, rows[0].trace)

    def card(self, name: str | None = None) -> dict[str, Any]:
        """The model as /v1/models shows it."""
        ready = self.ready
        check_model(name, ready.model)
        about = {"id": ready.model.name, "object": "model", "created": ready.since, "owned_by": "starr"}
        return about | {"max_model_len": ready.model.spec.max_length}

    async def tokenize(self, body: TokenizeBody) -> dict[str, Any]:
        """The tokens of a prompt or of messages."""
        check_model(body.model, self.ready.model)
        return await self.within(
            self.settings.timeout, self.choose_threads(body.content()), tokenize, body, self.ready.model
        )

    async def detokenize(self, body: DetokenizeBody) -> dict[str, Any]:
        """The text of tokens, special ones included."""
        check_model(body.model, self.ready.model)
        return await self.within(self.settings.timeout, self.planners, detokenize, body.tokens, self.ready.model)


def choose_writer(body: Decoding, asked: Asked, model: Model) -> AnswerWriter:
    """Who writes the answer to a body."""
    if isinstance(body, ResponsesBody):
        return ResponseWriter(model, body.kind, echoed=body.echoed())
    return AnswerWriter(model, body.kind, asked.include_usage)


def respond(job: Job, writer: AnswerWriter, likely: int | None) -> Response:
    """The whole answer of a job whose rows are over."""
    rows = [finish_row(ticket, writer.model, likely) for ticket in job.tickets]
    content = "".join(dump(writer.whole(answer_job(job, rows))))
    return Response(content, media_type="application/json")


def write_form(asked: Asked) -> str | None:
    """The form of an answer as text, equal for equal forms; None where any text will do."""
    try:
        return None if asked.form is None else json.dumps(asked.form.options())
    except RecursionError:  # nested too deep, which the thread that compiles it will say
        return ""


async def finish(job: Job, request: Request) -> None:
    """Wait for the last row of a job; raise Gone when the client closes the connection first."""

    async def end() -> None:
        async for _ in job.changes(ping=3600.0):
            pass

    async def leave() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(end()), asyncio.ensure_future(leave())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise Gone("The client closed the connection.")
        tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
