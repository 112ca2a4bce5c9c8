"""Engine threads and their lanes: rows of similar size that wait, and an engine with those that run.

A forward costs what its longest row costs times its rows, so rows share a forward with rows of at most twice their
size: a short one never pays for, nor waits for, a longer one. The lanes of a thread take turns by virtual time, as in
fair queueing: a lane's clock advances by the seconds it used divided by its share, and the lane furthest behind goes
next. Shares halve from each size to the next, so short rows keep most of the machine.

Nobody waits for later arrivals without end: a row that has let them pass for PATIENCE seconds goes next, and so does
its lane until it has caught up. So later arrivals get at most PATIENCE seconds, one step, and as long as the row.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from starr.decode.engine import Engine
from starr.decode.request import Request
from starr.errors import StarrError, WorkError
from starr.server.queue.job import Ticket
from starr.server.settings import Settings

if TYPE_CHECKING:
    from starr.model.load import Model

SMALLEST = 64  # positions of the first lane's largest row
PATIENCE = 1.0  # seconds of later arrivals that a row lets pass
BUDGETS = {"cpu": 1024}  # positions of one forward; more gain nothing on a CPU and make a step longer
log = logging.getLogger("starr.server")


def count_positions(request: Request) -> int:
    """Positions of one forward of the row as it stands, and what its strategy adds next.

    Two canvases under guidance, a shadow of the canvas, drafts beside it, the masks that it may grow by at a time.
    """
    needs = request.strategy.needs()
    length = len(request.tokens) + int(needs.get("growth", 0)) + (request.length if needs.get("shadow") else 0)
    return length * (2 if request.options.guidance > 0 else 1) * (1 + int(needs.get("drafts", 0)))


def choose_lane(positions: int) -> int:
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
        """Whether a row waits or is decoded."""
        return bool(self.queue or self.running)

    @property
    def tickets(self) -> list[Ticket]:
        """The rows that wait and those that are decoded."""
        return [*self.queue, *self.running.values()]

    @property
    def owed_since(self) -> float:
        """When its oldest row arrived that has let others pass for too long; infinity if there is none."""
        return min((ticket.queued_at for ticket in self.tickets if ticket.passed > PATIENCE), default=math.inf)

    def settle(self) -> None:
        """Between steps: let go of rows that nobody waits for, admit the next ones in order."""
        self.queue = deque(ticket for ticket in self.queue if not is_gone(ticket))
        with self.surviving():
            for id in [id for id, ticket in self.running.items() if is_gone(ticket)]:
                del self.running[id]
                self.engine.cancel(id)
        while self.queue and len(self.running) < self.room:
            ticket = self.queue.popleft()
            ticket.admitted_at = monotonic()
            try:
                self.running[self.engine.add(ticket.request)] = ticket
            except StarrError as error:
                ticket.end(error)

    def step(self) -> None:
        """One forward."""
        with self.surviving():
            events, failed = self.engine.step_apart()
            for id, error in failed.items():
                log.error("a row failed: %r", error)
                self.running.pop(id).end(explain_failure(error))
            for event in events:
                if self.running[event.id].receive(event):
                    del self.running[event.id]

    @contextmanager
    def surviving(self) -> Iterator[None]:
        """If the engine fails, so do the rows in it, and the next ones get a new one."""
        try:
            yield
        except Exception as error:
            log.exception("the engine failed with %d rows", len(self.running))
            for ticket in self.running.values():
                ticket.end(explain_failure(error))
            self.running, self.engine = {}, Engine(self.model, max_rows=self.room)


def explain_failure(error: Exception) -> StarrError:
    """What a client is told about an error that is not its own."""
    if isinstance(error, StarrError):
        return error
    return WorkError(f"The forward failed ({type(error).__name__}).", hint="The server keeps running; try again.")


def is_gone(ticket: Ticket) -> bool:
    """Whether nobody waits for the row any more."""
    return ticket.job.cancelled or ticket.over


class Worker:
    """Owns its lanes; everything but ``take``, ``wake`` and ``close`` happens in its thread."""

    def __init__(
        self,
        model: Model,
        settings: Settings,
        before_step: Callable[[], None],
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self.model, self.settings, self.before_step, self.now = model, settings, before_step, now
        self.lanes: dict[int, Lane] = {}
        self.condition = threading.Condition()
        self.arrived: list[Ticket] = []
        self.closing = False
        self.began: float | None = None  # when the present step began
        self.thread = threading.Thread(target=self._run, name="starr-engine", daemon=True)

    @property
    def tickets(self) -> list[Ticket]:
        """Rows that wait or run; a snapshot that may be a step old."""
        return [*self.arrived, *(ticket for lane in list(self.lanes.values()) for ticket in lane.tickets)]

    @property
    def waiting(self) -> int:
        """Rows in this thread's queues."""
        return len(self.arrived) + sum(len(lane.queue) for lane in list(self.lanes.values()))

    @property
    def running(self) -> int:
        """Rows that this thread decodes."""
        return sum(len(lane.running) for lane in list(self.lanes.values()))

    def take(self, ticket: Ticket) -> None:
        """Queue a row."""
        with self.condition:
            self.arrived.append(ticket)
            self.condition.notify()

    def wake(self) -> None:
        """Look again: some row may have been cancelled."""
        with self.condition:
            self.condition.notify()

    def close(self) -> None:
        """End the thread when its rows are done."""
        with self.condition:
            self.closing = True
            self.condition.notify()

    def _run(self) -> None:
        while (lane := self.turn()) is not None:
            self.began = monotonic()
            self.before_step()
            self.step(lane)
            self.began = None

    def step(self, lane: Lane) -> None:
        """One forward of a lane, counted against it and for those who let it pass."""
        owed, served, began = lane.owed_since < math.inf, list(lane.running.values()), self.now()
        lane.step()
        spent = self.now() - began
        lane.clock += 0.0 if owed else spent / lane.share
        for ticket in served:
            ticket.passed = max(0.0, ticket.passed - spent)
        first = min(ticket.queued_at for ticket in served)
        for ticket in (ticket for other in self.lanes.values() if other is not lane for ticket in other.tickets):
            ticket.passed += spent if ticket.queued_at < first else 0.0

    def turn(self) -> Lane | None:
        """The lane whose turn it is, ready to step; waits for work, None when closing and all is done."""
        with self.condition:
            while True:
                self._distribute()
                for lane in self.lanes.values():
                    lane.settle()
                busy = [lane for lane in self.lanes.values() if lane.running]
                if busy:
                    return min(busy, key=lambda lane: (lane.owed_since, lane.clock, lane.size))
                if self.closing:
                    return None
                self.condition.wait()

    def _distribute(self) -> None:
        """Put arrivals into their lanes; a lane that was idle starts at the time of those at work."""
        arrived, self.arrived = self.arrived, []
        for ticket in arrived:
            size = choose_lane(count_positions(ticket.request))
            if size not in self.lanes:
                self.lanes[size] = Lane(size, self.model, self.settings)
            lane = self.lanes[size]
            if not lane.busy:
                lane.clock = max([lane.clock, *self._clocks()])
            lane.queue.append(ticket)

    def _clocks(self) -> list[float]:
        """The earliest clock of the busy lanes, as a list that may be empty."""
        return [min(clocks)] if (clocks := [lane.clock for lane in self.lanes.values() if lane.busy]) else []
