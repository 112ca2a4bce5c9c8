"""One HTTP request on its way through the engine: its rows, and a mailbox that holds the latest event of each.

Settled text only grows, so the latest event says all that earlier ones said: a slow reader costs no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from time import monotonic

from starr.decode.request import Request
from starr.decode.result import Event, KeptStep
from starr.errors import StarrError
from starr.server.errors import Late


@dataclass(slots=True, eq=False)
class Ticket:
    """One row: written by the engine thread, read by the event loop."""

    request: Request
    job: Job
    queued_at: float = field(default_factory=monotonic)
    admitted_at: float | None = None
    passed: float = 0.0  # seconds that later arrivals got and the row did not
    first_text_at: float | None = None
    ended_at: float | None = None
    event: Event | None = None
    steps: list[KeptStep] = field(default_factory=list)  # of a traced row: a stream reports every one
    error: StarrError | None = None

    @property
    def over(self) -> bool:
        """Whether the row needs no more steps."""
        return self.ended_at is not None

    def receive(self, event: Event) -> bool:
        """Take an event; True if the row needs no more steps."""
        self.event = event
        if event.kept is not None:
            self.steps.append(event.kept)
        if self.first_text_at is None and event.text:
            self.first_text_at = monotonic()
        if event.done:
            self.ended_at = monotonic()
        self.job.wake()
        return self.over

    def end(self, error: StarrError | None = None) -> None:
        """No more steps: with an error, or with what is settled."""
        if not self.over:
            self.error, self.ended_at = error, monotonic()
            self.job.wake()


class Job:
    """The rows of one HTTP request."""

    def __init__(self, requests: Sequence[Request], timeout: float, left: float | None = None) -> None:
        """``left`` are the seconds of ``timeout`` that planning did not use."""
        self.tickets = [Ticket(request, self) for request in requests]
        self.deadline = monotonic() + (timeout if left is None else left)
        self.timeout = timeout
        self.cancelled = False
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Called by the engine thread: something is new."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self._changed.set)

    @property
    def over(self) -> bool:
        """Whether every row is over."""
        return all(ticket.over for ticket in self.tickets)

    @property
    def failed(self) -> bool:
        """Whether a row ended with an error."""
        return any(ticket.error is not None for ticket in self.tickets)

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return monotonic() >= self.deadline

    async def changes(self, ping: float) -> AsyncIterator[bool]:
        """True whenever something is new, False after ``ping`` seconds of silence; ends with the last row.

        Raises the error of a row that failed, and Late at the deadline.
        """
        while True:
            over = self.over  # before yielding: what arrives later wakes us again
            for ticket in self.tickets:
                if ticket.error is not None:
                    raise ticket.error
            yield True
            if over:
                return
            while not await self._wait(ping):
                yield False
            self._changed.clear()

    async def _wait(self, ping: float) -> bool:
        left = self.deadline - monotonic()
        if left <= 0:
            raise Late(f"The request did not finish within {self.timeout:g} seconds.", hint="Ask for fewer tokens.")
        try:
            await asyncio.wait_for(self._changed.wait(), min(ping, left))
        except TimeoutError:
            return False
        return True
