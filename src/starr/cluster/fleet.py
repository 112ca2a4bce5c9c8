"""The driver's side: workers take chunks, and the unfinished items of a dead worker go back into the queue.

Ray starts a dead worker again, at most RESTARTS times. The items it held are then tried one at a time; one that ends a
worker again fails alone, by name. The caller stores results by item, so nothing counts twice.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic, sleep
from typing import Any

from starr.cluster.start import Size, connect
from starr.cluster.worker import Failure, ModelSource
from starr.errors import WorkError, counted

RESTARTS = 8  # of one worker
DEATHS = 2  # of workers, after which an item that was alone with the last one fails
PAUSE = 1.0  # seconds between two questions to a worker that starts again

Unit = tuple[Hashable, int]  # what a chunk shares, and the index of one item


@dataclass(slots=True, eq=False)
class Member:
    """One worker as the driver sees it."""

    number: int
    actor: Any
    state: str = "starting"
    held: list[Unit] = field(default_factory=list)  # sent to it and not yet answered
    ask_at: float = 0.0  # when to ask again whether it is ready

    @property
    def lost(self) -> bool:
        return self.state == "lost"


class Fleet:
    """The workers, and the work that is left."""

    def __init__(self, ray: Any, size: Size, make: Callable[[], Any], say: Callable[[str], None]) -> None:
        self.ray, self.say = ray, say
        self.make = make  # holds the arguments of the workers, which a restart needs again
        self.errors, self.gone = ray.exceptions.RayActorError, ray.exceptions.ActorDiedError
        self.members = [Member(number, make()) for number in range(1, (size.workers or 1) + 1)]
        self.pending: dict[Any, Member] = {}  # streams of results, and answers of ``ready``
        self.queue: deque[Unit] = deque()
        self.suspects: deque[Unit] = deque()
        self.deaths: Counter[Unit] = Counter()
        self.reason = ""
        for member in self.members:
            self.ask(member)

    def end(self) -> None:
        """Stop all workers, also those that are starting."""
        for member in self.members:
            self.ray.kill(member.actor)

    def describe(self) -> str:
        """Describe the workers: ``2 workers: 1 decoding, 1 starting``."""
        counts = sorted(Counter(member.state for member in self.members).items())
        return f"{counted(len(self.members), 'worker')}: " + ", ".join(f"{n} {state}" for state, n in counts)

    def call(self, method: str) -> Any:
        """Call a method of the first worker that is ready; wait for one."""
        while True:
            self.check()
            for member in self.members:
                if member.state == "idle":
                    try:
                        return self.ray.get(getattr(member.actor, method).remote())
                    except self.errors:
                        self.restart(member)
            list(self.wait())

    def work(self, units: Sequence[Unit], most: int) -> Iterator[tuple[Unit, Any]]:
        """Yield every unit with its result or Failure, in any order; a chunk has at most ``most`` units of one key."""
        self.queue.extend(units)
        while self.queue or self.suspects or any(member.held for member in self.members):
            self.check()
            for member in self.members:
                if member.state == "idle" and (chunk := self.next_chunk(most)):
                    self.send(member, chunk)
            yield from self.wait()

    def check(self) -> None:
        """Raise if no worker is left."""
        if all(member.lost for member in self.members):
            raise WorkError(f"Every worker has failed. The last one: {self.reason}", hint="--resume continues.")

    def next_chunk(self, most: int) -> list[Unit]:
        """Take a suspect alone, or the next units of one key: few towards the end, so that all workers end together."""
        if self.suspects:
            return [self.suspects.popleft()]
        alive = sum(not member.lost for member in self.members)
        size = min(most, max(1, math.ceil(len(self.queue) / (2 * alive))))
        chunk: list[Unit] = []
        while self.queue and len(chunk) < size and (not chunk or self.queue[0][0] == chunk[0][0]):
            chunk.append(self.queue.popleft())
        return chunk

    def send(self, member: Member, chunk: list[Unit]) -> None:
        """Send a chunk to a worker."""
        indices = [index for _, index in chunk]
        stream = member.actor.chunk.options(num_returns="streaming").remote(chunk[0][0], indices)
        member.held, member.state = chunk, "decoding"
        self.pending[stream] = member

    def ask(self, member: Member) -> None:
        """Ask whether the worker is ready; it answers when its model is loaded."""
        self.pending[member.actor.ready.remote()] = member

    def wait(self) -> Iterator[tuple[Unit, Any]]:
        """Wait for one answer, a second at most, and take it."""
        now = monotonic()
        for member in self.members:
            if member.state == "restarting" and member not in self.pending.values() and now >= member.ask_at:
                self.ask(member)
        if not self.pending:
            sleep(PAUSE / 10)
            return
        answered, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=PAUSE)
        for answer in answered:
            member = self.pending[answer]
            yield from (
                self.take_results(answer, member) if member.state == "decoding" else self.take_ready(answer, member)
            )

    def take_ready(self, answer: Any, member: Member) -> list[tuple[Unit, Any]]:
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

    def take_results(self, stream: Any, member: Member) -> list[tuple[Unit, Any]]:
        """Take the next results of a chunk."""
        try:
            results = self.ray.get(next(stream))
        except StopIteration:
            del self.pending[stream]
            member.state = "idle"
            return [(unit, Failure("The worker gave no result.")) for unit in self.release(member)]
        except self.errors:
            del self.pending[stream]
            self.restart(member)
            return self.requeue(member)
        except self.ray.exceptions.RayTaskError as error:
            del self.pending[stream]
            member.state = "idle"
            message = str(error).strip().splitlines()[-1]
            return [(unit, Failure(message)) for unit in self.release(member)]
        units = {unit[1]: unit for unit in member.held}
        member.held = [unit for unit in member.held if unit[1] not in dict(results)]
        return [(units[index], result) for index, result in results]

    def release(self, member: Member) -> list[Unit]:
        """Take from a worker what it has not answered."""
        held, member.held = member.held, []
        return held

    def requeue(self, member: Member) -> list[tuple[Unit, Any]]:
        """Queue the units of a dead worker again, one at a time; return those that crashed too often alone."""
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
        """Note that a worker died: Ray starts it again, and in a moment we ask whether it is ready."""
        member.state, member.ask_at = "restarting", monotonic() + PAUSE

    def lose(self, member: Member, reason: str) -> None:
        """Stop a worker that fails for good: one line, and the others go on."""
        member.state, self.reason = "lost", " ".join(reason.split())
        self.say(f"worker {member.number} is lost: {self.reason}")
        self.ray.kill(member.actor)


def make_starter(ray: Any, size: Size, kind: type, loading: ModelSource, rest: tuple[Any, ...]) -> Callable[[], Any]:
    """Make a function that starts one more worker of a kind; what all of them need is sent to Ray once."""
    loading = replace(loading, threads=max(1, math.floor(size.cpus)))
    needs = {"num_cpus": size.cpus, "num_gpus": size.gpus or 0, "max_restarts": RESTARTS, "max_task_retries": 0}
    actor = ray.remote(**needs)(kind)
    shared = [ray.put(part) for part in rest]
    return lambda: actor.remote(loading, *shared)


@contextmanager
def start_fleet(size: Size, kind: type, loading: ModelSource, rest: tuple[Any, ...]) -> Iterator[Fleet]:
    """Start workers of a kind on Ray, and end them with the block; ``rest`` are their further arguments."""
    with connect(size) as (ray, known):
        fleet = Fleet(ray, known, make_starter(ray, known, kind, loading, rest), say)
        try:
            yield fleet
        finally:
            fleet.end()


def say(line: str) -> None:
    """Print a line for people."""
    print(line, file=sys.stderr, flush=True)
