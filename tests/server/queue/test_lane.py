"""The engine thread: joining and leaving, lanes, fairness, a bounded queue, failures, shutting down."""

import asyncio
import itertools
import random
import threading
from dataclasses import replace

import pytest

import starr
from starr.api import Options, build_request, run_all
from starr.errors import WorkError
from starr.model.threads import MACHINE
from starr.server.errors import Full, Unavailable
from starr.server.queue.job import Job
from starr.server.queue.lane import choose_lane, count_positions
from starr.server.queue.pool import Pool
from starr.server.settings import Settings
from tests.server.nets import Gate
from tests.server.running import PATIENCE, wait_until

SETTINGS = Settings(engines=1, max_rows=4, max_positions=1024, max_queue=64)


@pytest.fixture
def loop():
    """An event loop that turns in a thread, as the server's does."""
    here = asyncio.new_event_loop()
    thread = threading.Thread(target=here.run_forever, daemon=True)
    thread.start()
    yield here
    here.call_soon_threadsafe(here.stop)
    thread.join()


def on(loop, work):
    return asyncio.run_coroutine_threadsafe(work, loop).result(timeout=PATIENCE)


async def job_of(requests, timeout=PATIENCE):
    return Job(requests, timeout)


async def ended(job):
    async for _ in job.changes(ping=60):
        pass


def row(model, prompt="a prompt", **options):
    return build_request(model, prompt, Options(**{"max_tokens": 16} | options), stream=True)


def test_lanes_double_in_size():
    assert [choose_lane(n) for n in (1, 64, 65, 128, 129, 256, 257, 1024)] == [0, 0, 1, 1, 2, 2, 3, 4]


def test_cost_counts_what_a_forward_recomputes(model):
    plain = row(model)
    positions = len(plain.tokens)
    assert count_positions(plain) == positions
    assert count_positions(row(model, guidance=1.0)) == 2 * positions
    assert count_positions(row(model, strategy="daedal:expand=8,tail=16")) == positions + 16
    assert count_positions(row(model, strategy="wino")) == positions + 16
    assert count_positions(row(model, strategy="freedave:drafts=4")) == 4 * positions


@pytest.mark.parametrize("engines", [1, 2])
def test_thirty_two_different_requests_get_their_own_answers(model, loop, engines):
    """Strategies, blocks, lengths, seeds and caches mixed; each answer is that of the request alone."""
    rnd, pool = random.Random(0), Pool(model, replace(SETTINGS, engines=engines))
    pool.start()
    requests = [
        row(
            model,
            f"prompt {i} " + "x" * rnd.randint(0, 60),
            strategy=rnd.choice(["starr", "threshold:tau=0.05", "confidence", "saber"]) if i % 8 else "wino",
            max_tokens=rnd.randint(4, 24),
            block_length=rnd.choice([None, 8]),
            temperature=rnd.choice([0.0, 0.9]),
            seed=i,
            cache=rnd.choice(["none", "prefix"]) if i % 8 else "none",
        )
        for i in range(32)
    ]
    jobs = [on(loop, job_of([request])) for request in requests]
    for job in jobs:
        pool.submit(job)
    for job in jobs:
        on(loop, ended(job))
    answers = [job.tickets[0].event.generation.tokens for job in jobs]
    assert answers == [run_all(model, [replace(r, stream=False)], 1)[0].tokens for r in requests]
    assert pool.running == pool.waiting == 0
    pool.stop(5)


def test_rows_go_where_the_least_is_to_be_done_and_cores_are_shared(model, loop, monkeypatch):
    for name, value in {"most": 4, "free": 4.0, "fixed": None, "at_work": 1, "measure": lambda: None}.items():
        monkeypatch.setattr(MACHINE, name, value)
    pool = Pool(model, replace(SETTINGS, engines=2))
    for size in (200, 16, 16, 16):
        pool.submit(on(loop, job_of([row(model, max_tokens=size)])))
    assert [worker.waiting for worker in pool.workers] == [1, 3]
    found = []
    for worker in pool.workers:
        worker.turn()
        pool.share_cores()
        found.append(MACHINE.threads())
    assert found == [4, 2]


def test_the_queue_is_bounded_and_all_or_none(model, loop):
    pool = Pool(model, replace(SETTINGS, max_queue=3))
    pool.submit(on(loop, job_of([row(model)] * 2)))
    with pytest.raises(Full) as caught:
        pool.submit(on(loop, job_of([row(model)] * 2)))
    assert caught.value.status == 429
    assert caught.value.retry_after >= 1
    assert pool.waiting == 2
    pool.submit(on(loop, job_of([row(model)])))


def test_a_cancelled_job_leaves_the_queue_and_the_batch(model, loop):
    pool = Pool(model, replace(SETTINGS, max_rows=1))
    first, second = (on(loop, job_of([row(model, max_tokens=200)])) for _ in range(2))
    pool.submit(first)
    pool.submit(second)
    lane = pool.workers[0].turn()
    lane.step()
    assert (pool.running, pool.waiting) == (1, 1)
    pool.release(first)
    pool.release(second)
    pool.workers[0].close()
    assert pool.workers[0].turn() is None
    assert pool.running == pool.waiting == 0
    assert not lane.engine.busy


def test_rows_and_positions_of_a_forward_are_bounded(model, loop):
    pool = Pool(model, SETTINGS)
    small, large = [row(model, max_tokens=16)] * 9, [row(model, max_tokens=400)] * 5
    for request in small + large:
        pool.submit(on(loop, job_of([request])))
    for _ in range(12):
        lane = pool.workers[0].turn()
        assert len(lane.running) <= SETTINGS.max_rows
        assert sum(len(t.request.tokens) for t in lane.running.values()) <= SETTINGS.max_positions
        lane.step()


def test_short_requests_keep_their_pace_and_long_ones_never_starve(model, loop):
    """Time is counted as positions here. One long row among a flood of short ones, and the other way round."""
    ticks = itertools.count()
    pool = Pool(model, SETTINGS)
    for request in [row(model, max_tokens=400), *([row(model)] * 40)]:
        pool.submit(on(loop, job_of([request])))
    spent = {}
    while (lane := pool.workers[0].turn()) and next(ticks) < 120:
        positions = sum(len(t.request.tokens) for t in lane.running.values())
        before = len(lane.running)
        lane.step()
        lane.clock += positions / lane.share
        spent[lane.size] = spent.get(lane.size, 0) + positions
        both = all(other.busy for other in pool.workers[0].lanes.values())
        if not both or not before:
            break
    short, long = spent[0], spent[3]
    assert long > 0
    assert 4 < short / long < 16  # shares of 1 and 1/8, in whole steps


class Broken:
    """A net that fails when a row holds a certain token."""

    def __init__(self, net, token):
        self.net, self.token = net, token

    def __getattr__(self, name):
        return getattr(self.net, name)

    def __call__(self, tokens, *args, **more):
        if (tokens == self.token).any():
            raise RuntimeError("no memory")
        return self.net(tokens, *args, **more)


def test_a_failed_forward_fails_its_rows_and_nothing_else(model, loop):
    poison = 200
    pool = Pool(replace(model, net=Broken(model.net, poison)), SETTINGS)
    good = [on(loop, job_of([row(model, "x" * 100, seed=i)])) for i in range(2)]
    bad = on(loop, job_of([build_request(model, [poison], Options(max_tokens=8), stream=True)]))
    later = on(loop, job_of([row(model, [5, 6, 7])]))
    for job in (*good, bad):
        pool.submit(job)
    pool.start()
    with pytest.raises(WorkError, match="forward failed"):
        on(loop, ended(bad))
    pool.submit(later)
    for job in (*good, later):
        on(loop, ended(job))
        expected = run_all(model, [replace(job.tickets[0].request, stream=False)], 1)[0]
        assert job.tickets[0].event.generation.tokens == expected.tokens
    pool.stop(5)


def test_shutting_down_finishes_or_returns_what_is_settled(writer, loop):
    """One row is done; the other one has begun, and its forward does not come back in time."""
    gate = Gate(writer)
    pool = Pool(gate.model, replace(SETTINGS, max_rows=1))
    short = on(loop, job_of([row(writer, max_tokens=4)]))
    long = on(loop, job_of([row(writer, max_tokens=200, strategy="confidence", block_length=2, eos="never")]))
    for job in (short, long):
        pool.submit(job)
    pool.start()
    wait_until(lambda: short.over and long.tickets[0].event and long.tickets[0].event.text)
    gate.hold()
    pool.stop(0.2)
    gate.open()
    assert short.tickets[0].event.done
    assert long.over
    assert not long.tickets[0].event.done
    expected = starr.generate(
        writer, "a prompt", max_tokens=200, strategy="confidence", block_length=2, eos="never"
    ).text
    assert 0 < len(long.tickets[0].event.text) < len(expected)
    assert expected.startswith(long.tickets[0].event.text)
    with pytest.raises(Unavailable, match="shutting down"):
        pool.submit(on(loop, job_of([row(writer)])))
    pool.workers[0].thread.join(timeout=PATIENCE)
    assert not pool.workers[0].thread.is_alive()
