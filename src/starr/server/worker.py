"""The engine thread: rows join and leave between steps, in lanes of rows of similar size.

A forward costs what its longest row costs times its rows, so rows share a forward with rows of at most twice their
size: a short one never pays for, nor waits for, a longer one. Lanes take turns by virtual time, as in fair queueing:
a lane's clock advances by the seconds it used divided by its share, and the lane furthest behind goes next. Shares
halve from each size to the next, so short rows keep most of the machine and long ones never starve.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from starr.engine import Engine
from starr.errors import StarrError, WorkError
from starr.request import Request
from starr.server.job import Job, Ticket
from starr.server.settings import Settings

if TYPE_CHECKING:
    from starr.model.load import Model

SMALLEST = 64  # positions of the first lane's largest row
BUDGETS = {"cpu": 1024}  # positions of one forward; more gain nothing on a CPU and make a step longer
log = logging.getLogger("starr.server")


class Full(StarrError):
    """The queue has no room."""

    status = 429

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message, hint="Try again later.")
        self.retry_after = retry_after


class Closing(StarrError):
    """The server takes nothing new."""

    status = 503


def cost(request: Request, longest: int) -> int:
    """Positions of the row's largest forward: two canvases under guidance, the whole context if it may grow."""
    length = longest if request.strategy.grows else len(request.tokens)
    doubled = request.sampling.guidance > 0 or "shadow" in request.strategy.signals
    return length * (2 if doubled else 1)


def size_of(positions: int) -> int:
    """The lane a row belongs to: 0 up to SMALLEST positions, then one more with every doubling."""
    return max(0, (positions - 1) // SMALLEST).bit_length()


class Lane:
    """Rows of similar size: those that wait, and an engine with those that run."""

    def __init__(self, size: int, model: Model, settings: Settings) -> None:
        budget = settings.max_positions or BUDGETS.get(model.device.type, 16384)
        room = budget // (SMALLEST << size)
        self.size, self.share = size, 0.5**size
        self.model, self.room = model, max(1, min(settings.max_rows, room))
        self.clock = 0.0
        self.queue: deque[Ticket] = deque()
        self.running: dict[int, Ticket] = {}
        self.engine = Engine(model, max_rows=self.room)

    @property
    def busy(self) -> bool:
        return bool(self.queue or self.running)

    def settle(self) -> None:
        """Between steps: let go of rows that nobody waits for, admit the next ones in order."""
        self.queue = deque(ticket for ticket in self.queue if not gone(ticket))
        for id in [id for id, ticket in self.running.items() if gone(ticket)]:
            self.engine.cancel(id)
            del self.running[id]
        while self.queue and len(self.running) < self.room:
            ticket = self.queue.popleft()
            ticket.admitted_at = monotonic()
            try:
                ticket.id = self.engine.add(ticket.request)
                self.running[ticket.id] = ticket
            except StarrError as error:
                ticket.end(error)

    def step(self) -> None:
        """One forward; if it fails, so do the rows in it, and the next ones get a new engine."""
        try:
            events = self.engine.step()
        except Exception as error:
            log.exception("a forward of %d rows failed", len(self.running))
            failure = WorkError(f"The forward failed ({type(error).__name__}).", hint="The server goes on; try again.")
            for ticket in self.running.values():
                ticket.end(failure)
            self.running, self.engine = {}, Engine(self.model, max_rows=self.room)
            return
        for event in events:
            ticket = self.running[event.id]
            if ticket.receive(event):
                del self.running[event.id]
                if not event.done:
                    self.engine.cancel(event.id)


def gone(ticket: Ticket) -> bool:
    return ticket.job.cancelled or ticket.over


class Worker:
    """Owns the lanes; everything but ``submit``, ``cancel`` and ``stop`` happens in its thread."""

    def __init__(self, model: Model, settings: Settings, clock: Callable[[], float] = perf_counter) -> None:
        self.model, self.settings, self.now = model, settings, clock
        self.lanes: dict[int, Lane] = {}
        self.condition = threading.Condition()
        self.arrived: list[Ticket] = []
        self.closing = False
        self.seconds_per_row = 1.0  # moving average, for Retry-After
        self.thread = threading.Thread(target=self._run, name="starr-engine", daemon=True)

    def start(self) -> None:
        self.thread.start()

    @property
    def waiting(self) -> int:
        return len(self.arrived) + sum(len(lane.queue) for lane in list(self.lanes.values()))

    @property
    def running(self) -> int:
        return sum(len(lane.running) for lane in list(self.lanes.values()))

    def submit(self, job: Job) -> None:
        """Queue a job's rows, all or none."""
        with self.condition:
            if self.closing:
                raise Closing("The server is shutting down.", hint="Ask another one.")
            waiting = self.waiting
            if waiting + len(job.tickets) > self.settings.max_queue:
                again = max(1, round(waiting * self.seconds_per_row / self.settings.max_rows))
                raise Full(f"{waiting} rows wait, the most is {self.settings.max_queue}.", retry_after=again)
            self.arrived += job.tickets
            self.condition.notify()

    def cancel(self, job: Job) -> None:
        """Forget a job before the next step; harmless when it is over."""
        with self.condition:
            job.cancelled = True
            self.condition.notify()

    def stop(self, grace: float) -> None:
        """Take no more, let rows run for ``grace`` seconds, then end them with what is settled."""
        with self.condition:
            self.closing = True
            self.condition.notify()
        self.thread.join(timeout=grace)
        for ticket in [*self.arrived, *(t for lane in self.lanes.values() for t in every(lane))]:
            ticket.end(None if ticket.event else WorkError("The server shut down before the answer began."))

    def _run(self) -> None:
        while (lane := self._next()) is not None:
            began = self.now()
            before = list(lane.running.values())
            lane.step()
            lane.clock += (self.now() - began) / lane.share
            for ticket in before:
                if ticket.ended_at is not None:
                    spent = ticket.ended_at - ticket.queued_at
                    self.seconds_per_row += 0.1 * (spent - self.seconds_per_row)

    def _next(self) -> Lane | None:
        """The lane whose turn it is, ready to step; waits for work, None when closing and all is done."""
        with self.condition:
            while True:
                self._distribute()
                for lane in self.lanes.values():
                    lane.settle()
                busy = [lane for lane in self.lanes.values() if lane.running]
                if busy:
                    return min(busy, key=lambda lane: (lane.clock, lane.size))
                if self.closing:
                    return None
                self.condition.wait()

    def _distribute(self) -> None:
        """Put arrivals into their lanes; a lane that was idle starts at the time of those at work."""
        arrived, self.arrived = self.arrived, []
        for ticket in arrived:
            size = size_of(cost(ticket.request, self.model.spec.max_length))
            if size not in self.lanes:
                self.lanes[size] = Lane(size, self.model, self.settings)
            lane = self.lanes[size]
            if not lane.busy:
                lane.clock = max([lane.clock, *self._clocks()])
            lane.queue.append(ticket)

    def _clocks(self) -> list[float]:
        """The earliest clock of the busy lanes, as a list that may be empty."""
        return [min(clocks)] if (clocks := [lane.clock for lane in self.lanes.values() if lane.busy]) else []


def every(lane: Lane) -> Iterable[Ticket]:
    return [*lane.queue, *lane.running.values()]
