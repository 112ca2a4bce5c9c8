"""An engine thread: its lanes take turns, and rows join and leave between steps.

Turns go by virtual time, as in fair queueing: a lane's clock advances by the seconds it used divided by its share, and
the lane furthest behind goes next. Shares halve from each size to the next, so short rows keep most of the machine and
long ones never starve.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from starr.server.queue.job import Ticket
from starr.server.queue.lane import Lane, cost, size_of
from starr.server.settings import Settings

if TYPE_CHECKING:
    from starr.model.load import Model


class Worker:
    """Owns its lanes; everything but ``take``, ``wake`` and ``close`` happens in its thread."""

    def __init__(self, model: Model, settings: Settings, before_step: Callable[[], None]) -> None:
        self.model, self.settings, self.before_step = model, settings, before_step
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
            began = perf_counter()
            self.began = monotonic()
            self.before_step()
            lane.step()
            lane.clock += (perf_counter() - began) / lane.share
            self.began = None

    def turn(self) -> Lane | None:
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
