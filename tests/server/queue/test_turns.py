"""Turns of the lanes under a fake clock: what a step costs is said by the test, and no forward is made."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.api import Options, build_request
from starr.server.queue import lane as lanes
from starr.server.queue.job import Ticket
from starr.server.queue.lane import PATIENCE, Worker
from starr.server.settings import Settings
from tests.tiny import tiny_model

MODEL = tiny_model()


class Mailbox:
    """What a ticket needs of its job."""

    cancelled = False

    def wake(self):
        pass


class Machine:
    """An engine thread whose steps take as long as the lane is large, and end a row after its number of steps."""

    def __init__(self, monkeypatch, rows=4):
        self.time, self.log, self.left = 0.0, [], {}
        self.worker = Worker(MODEL, Settings(max_rows=rows), lambda: None, lambda: self.time)
        monkeypatch.setattr(lanes.Lane, "step", self.forward)

    def arrive(self, tokens, steps):
        request = build_request(MODEL, "a b c", Options(max_tokens=tokens), stream=True)
        ticket = Ticket(request, Mailbox(), queued_at=self.time)
        self.left[id(ticket)] = steps
        self.worker.take(ticket)
        return ticket

    def forward(self, lane=None):
        lane = self.lane
        spent = 0.01 * (1 << lane.size) * len(lane.running)
        self.log.append((spent, lane.size, list(lane.running.values())))
        self.time += spent
        for ticket in lane.running.values():
            self.left[id(ticket)] -= 1
            if self.left[id(ticket)] == 0:
                ticket.end()
                ticket.ended_at = self.time

    def turn(self):
        self.worker.closing = not any(left > 0 for left in self.left.values())
        self.lane = self.worker.turn()
        if self.lane is not None:
            self.worker.step(self.lane)
        return self.lane is not None

    def waited(self, ticket):
        """Seconds that later arrivals of other lanes got during a row's life, its own seconds, and the longest step."""
        later = own = time = 0.0
        for spent, _, served in self.log:
            if ticket.queued_at <= time < ticket.ended_at:
                own += spent * (ticket in served)
                later += spent * all(other.queued_at > ticket.queued_at for other in served)
            time += spent
        return later, own, max(spent for spent, _, _ in self.log)


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


def test_a_long_row_beside_a_flood_of_short_ones(machine):
    """50 steps of 0.04 seconds; by its share alone it would let others pass for 8 seconds."""
    machine.arrive(10, 4)
    long = machine.arrive(200, 50)
    while not long.over:
        while machine.worker.waiting + machine.worker.running < 9:
            machine.arrive(10, 4)
        assert machine.turn()
    later, own, step = machine.waited(long)
    assert own == pytest.approx(50 * 0.04)
    assert PATIENCE < later <= PATIENCE + own + step


def test_short_rows_go_first_as_long_as_nobody_is_owed(machine):
    machine.arrive(200, 50)
    machine.turn()
    short = machine.arrive(10, 4)
    while not short.over:
        assert machine.turn()
    assert short.ended_at - short.queued_at < 0.2


@settings(max_examples=30, deadline=None, database=None)
@given(seed=st.integers(0, 10**6), count=st.integers(5, 40))
def test_nobody_waits_for_later_arrivals_without_end(seed, count):
    rnd = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(patch, rows=rnd.choice([1, 2, 4]))
        tickets = []
        while len(tickets) < count or not all(ticket.over for ticket in tickets):
            if len(tickets) < count and rnd.random() < 0.5:
                tickets.append(machine.arrive(rnd.choice([5, 10, 60, 120, 240]), rnd.randint(1, 30)))
            machine.turn()
    for ticket in tickets:
        later, own, step = machine.waited(ticket)
        assert later <= PATIENCE + own + step + 1e-9
