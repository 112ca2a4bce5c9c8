"""The driver's side: workers pull chunks, and what a dying worker leaves unfinished goes back into the queue.

A worker that dies is started again by Ray, at most RESTARTS times. The items it held are then tried one at a time; one
that ends a worker again is given up by itself, and named. The caller stores results by item, so nothing counts twice.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic, sleep
from typing import Any

from starr.cluster.start import Size
from starr.cluster.worker import Failure, ModelSource
from starr.errors import WorkError, counted

RESTARTS = 8  # of one worker
DEATHS = 2  # of workers, after which an item that was alone with the last one is given up
PAUSE = 1.0  # seconds between two looks at a worker that is being started again

Unit = tuple[Hashable, int]  # what a chunk shares, and the place of one item


@dataclass(slots=True, eq=False)
class Member:
    """One worker as the driver sees it."""

    number: int
    actor: Any
    state: str = "starting"
    held: list[Unit] = field(default_factory=list)  # sent to it and not yet answered
    look_at: float = 0.0  # when to ask again whether it is ready

    @property
    def over(self) -> bool:
        return self.state == "lost"


class Fleet:
    """Some workers, and the work that is left."""

    def __init__(self, ray: Any, size: Size, make: Callable[[], Any], say: Callable[[str], None]) -> None:
        self.ray, self.say = ray, say
        self.make = make  # keeps what the workers were made with, which a restart needs again
        self.errors, self.gone = ray.exceptions.RayActorError, ray.exceptions.ActorDiedError
        self.members = [Member(number, make()) for number in range(1, (size.workers or 1) + 1)]
        self.pending: dict[Any, Member] = {}  # what Ray will answer: a stream of results, or whether a worker is ready
        self.queue: deque[Unit] = deque()
        self.suspects: deque[Unit] = deque()
        self.deaths: Counter[Unit] = Counter()
        self.reason = ""
        for member in self.members:
            self.ask(member)

    def end(self) -> None:
        """Stop the workers, also those that are starting."""
        for member in self.members:
            self.ray.kill(member.actor)

    def states(self) -> str:
        """For people: ``2 workers: 1 decoding, 1 starting``."""
        counts = sorted(Counter(member.state for member in self.members).items())
        return f"{counted(len(self.members), 'worker')}: " + ", ".join(f"{n} {state}" for state, n in counts)

    def call(self, method: str) -> Any:
        """What the first worker that is ready says; waits for one."""
        while True:
            self.check()
            for member in self.members:
                if member.state == "idle":
                    try:
                        return self.ray.get(getattr(member.actor, method).remote())
                    except self.errors:
                        self.restart(member)
            list(self.turn())

    def work(self, units: Sequence[Unit], most: int) -> Iterator[tuple[Unit, Any]]:
        """Every unit with its result or a Failure, in any order; chunks hold at most ``most`` of the same key."""
        self.queue.extend(units)
        while self.queue or self.suspects or any(member.held for member in self.members):
            self.check()
            for member in self.members:
                if member.state == "idle" and (chunk := self.next_chunk(most)):
                    self.send(member, chunk)
            yield from self.turn()

    def check(self) -> None:
        if all(member.over for member in self.members):
            raise WorkError(f"Every worker has failed. The last one: {self.reason}", hint="--resume continues.")

    def next_chunk(self, most: int) -> list[Unit]:
        """A suspect alone, or the next units with one key: fewer towards the end, so that all workers end together."""
        if self.suspects:
            return [self.suspects.popleft()]
        alive = sum(not member.over for member in self.members)
        size = min(most, max(1, math.ceil(len(self.queue) / (2 * alive))))
        chunk: list[Unit] = []
        while self.queue and len(chunk) < size and (not chunk or self.queue[0][0] == chunk[0][0]):
            chunk.append(self.queue.popleft())
        return chunk

    def send(self, member: Member, chunk: list[Unit]) -> None:
        places = [place for _, place in chunk]
        stream = member.actor.chunk.options(num_returns="streaming").remote(chunk[0][0], places)
        member.held, member.state = chunk, "decoding"
        self.pending[stream] = member

    def ask(self, member: Member) -> None:
        """Whether the worker is ready; the answer comes when its model is loaded."""
        self.pending[member.actor.ready.remote()] = member

    def turn(self) -> Iterator[tuple[Unit, Any]]:
        """Wait for one answer, a second at most, and take it."""
        now = monotonic()
        for member in self.members:
            if member.state == "restarting" and member not in self.pending.values() and now >= member.look_at:
                self.ask(member)
        if not self.pending:
            sleep(PAUSE / 10)
            return
        answered, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=PAUSE)
        for answer in answered:
            member = self.pending[answer]
            yield from (self.take(answer, member) if member.state == "decoding" else self.begin(answer, member))

    def begin(self, answer: Any, member: Member) -> list[tuple[Unit, Any]]:
        """Take the answer of ``ready``."""
        del self.pending[answer]
        try:
            problem = self.ray.get(answer)
        except self.gone:
            self.lose(member, f"it died more than {RESTARTS} times.")
            return []
        except self.errors:
            self.restart(member)
            return []
        if problem:
            self.lose(member, problem)
        else:
            member.state = "idle"
        return []

    def take(self, stream: Any, member: Member) -> list[tuple[Unit, Any]]:
        """Take the next results of a chunk."""
        try:
            found = self.ray.get(next(stream))
        except StopIteration:
            del self.pending[stream]
            member.state = "idle"
            return [(unit, Failure("The worker gave no result.")) for unit in self.release(member)]
        except self.errors:
            del self.pending[stream]
            self.restart(member)
            return self.given_up(member)
        except self.ray.exceptions.RayTaskError as error:
            del self.pending[stream]
            member.state = "idle"
            message = str(error).strip().splitlines()[-1]
            return [(unit, Failure(message)) for unit in self.release(member)]
        by_place = {unit[1]: unit for unit in member.held}
        member.held = [unit for unit in member.held if unit[1] not in dict(found)]
        return [(by_place[place], result) for place, result in found]

    def release(self, member: Member) -> list[Unit]:
        held, member.held = member.held, []
        return held

    def given_up(self, member: Member) -> list[tuple[Unit, Any]]:
        """What a dead worker held: back into the queue, one at a time; failed if it crashed too often alone."""
        held = self.release(member)
        failed = []
        for unit in held:
            self.deaths[unit] += 1
            if len(held) == 1 and self.deaths[unit] >= DEATHS:
                failed.append((unit, Failure(f"It crashed its worker {self.deaths[unit]} times.")))
            else:
                self.suspects.append(unit)
        return failed

    def restart(self, member: Member) -> None:
        """A worker died: Ray starts it again, and in a moment we ask whether it is ready."""
        member.state, member.look_at = "restarting", monotonic() + PAUSE

    def lose(self, member: Member, reason: str) -> None:
        """A worker that fails for good: one line, and the others go on."""
        member.state, self.reason = "lost", " ".join(reason.split())
        self.say(f"worker {member.number} is lost: {self.reason}")
        self.ray.kill(member.actor)


def actors(ray: Any, size: Size, kind: type, loading: ModelSource, rest: tuple[Any, ...]) -> Callable[[], Any]:
    """A function that starts one more worker of a kind; what all of them need is sent to Ray once."""
    placed = replace(loading, threads=max(1, math.floor(size.cpus)))
    needs = {"num_cpus": size.cpus, "num_gpus": size.gpus or 0, "max_restarts": RESTARTS, "max_task_retries": 0}
    actor = ray.remote(**needs)(kind)
    shared = [ray.put(part) for part in rest]
    return lambda: actor.remote(placed, *shared)
