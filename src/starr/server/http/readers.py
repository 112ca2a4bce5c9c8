"""Threads that read requests. What a client can make long has threads of its own, so that others do not wait for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from starr.server.http.decide import decided
from starr.server.http.formats import form_of
from starr.server.http.parse import ParsedBody, parse_body
from starr.server.queue.job import Late

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.server.http.answers import AnswerShape
    from starr.server.http.protocol import Decoding
    from starr.server.settings import Settings

PLANNERS = 2  # for ordinary requests, and for forms whose automaton is kept
COMPILERS = 2  # for new forms
DECIDERS = 2  # for choices with probabilities, which is a forward
T = TypeVar("T")


class Readers:
    """Pools of threads; whatever waits for one of them does so until its request's deadline."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.planners = ThreadPoolExecutor(PLANNERS, thread_name_prefix="starr-plan")
        self.compilers = ThreadPoolExecutor(COMPILERS, thread_name_prefix="starr-compile")
        self.deciders = ThreadPoolExecutor(DECIDERS, thread_name_prefix="starr-decide")

        self.kept: WeakValueDictionary[str, Any] = WeakValueDictionary()  # automata by form, while they are kept

    def end(self) -> None:
        """Begin nothing new."""
        for pool in (self.planners, self.compilers, self.deciders):
            pool.shutdown(wait=False, cancel_futures=True)

    async def parse(self, body: Decoding, model: Model) -> ParsedBody:
        """What a body asks for; only a form without an automaton waits for the threads that compile."""
        form = form_text(body)
        pool = self.planners if form is None or form in self.kept else self.compilers
        async with self.deadline(body.timeout):
            asked = await in_pool(pool, parse_body, body, model, self.settings)
        if form is not None:
            self.kept[form] = asked.requests[0].constraint
        return asked

    async def decide(self, body: Decoding, model: Model, shape: AnswerShape) -> dict[str, Any]:
        """The whole answer to choices with probabilities."""
        async with self.deadline(body.timeout):
            return await in_pool(self.deciders, decided, body, model, shape)

    async def plan(self, work: Callable[..., T], *arguments: object) -> T:
        """Some other work on the text of a request."""
        async with self.deadline(None):
            return await in_pool(self.planners, work, *arguments)

    @asynccontextmanager
    async def deadline(self, asked: float | None) -> AsyncIterator[None]:
        """Raise Late after as many seconds as the request or the server allows; a wrong number is refused later."""
        most = self.settings.timeout
        seconds = most if asked is None or asked <= 0 else min(asked, most)
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            rule = f"The request was not read within {seconds:g} seconds."
            raise Late(rule, hint="Send a smaller request.") from None


async def in_pool(pool: Executor, work: Callable[..., T], *arguments: object) -> T:
    """Do the work in one of the pool's threads."""
    return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)


def form_text(body: Decoding) -> str | None:
    """The form of an answer as text, equal for equal forms; None where any text will do."""
    form = form_of(body)
    try:
        return json.dumps(form) if form else None
    except RecursionError:  # nested too deep, which the thread that compiles it will say
        return ""
