"""All engine threads of a server: which of them gets a row, how many rows may wait, how they end.

On a CPU one forward does not use several cores well, so there is an engine thread per core; one that works alone uses
them all. Elsewhere there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

from starr.errors import WorkError
from starr.model.threads import MACHINE
from starr.server.errors import Full, Unavailable
from starr.server.queue.job import Job
from starr.server.queue.lane import Worker, count_positions
from starr.server.settings import Settings

if TYPE_CHECKING:
    from starr.model.load import Model


def count_engines(model: Model, settings: Settings) -> int:
    """As many as asked for, or one, or on a CPU one per core that we may use."""
    return settings.engines or (MACHINE.fixed or MACHINE.most if model.device.type == "cpu" else 1)


class Pool:
    """Engine threads and what they share: the bound on rows that wait."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.model, self.settings = model, settings
        count = count_engines(model, settings)
        self.workers = [Worker(model, settings, self.share_cores) for _ in range(count)]
        self.lock = threading.Lock()
        self.closing = False
        self.answered: list[float] = []  # seconds that the last rows took

    def start(self) -> None:
        """Start the engine threads."""
        for worker in self.workers:
            worker.thread.start()

    def share_cores(self) -> None:
        """Called by an engine thread before it steps: the free cores are split among those at work."""
        MACHINE.at_work = max(1, sum(worker.running > 0 for worker in self.workers))

    @property
    def running(self) -> int:
        """Rows being decoded."""
        return sum(worker.running for worker in self.workers)

    @property
    def waiting(self) -> int:
        """Rows in the queues."""
        return sum(worker.waiting for worker in self.workers)

    def troubled(self) -> Iterator[tuple[Worker, str]]:
        """The engine threads that will not go on, each with what is wrong."""
        for worker in self.workers:
            began = worker.began
            if not worker.thread.is_alive() and not self.closing:
                yield worker, "An engine thread is dead."
            elif began is not None and monotonic() - began > self.settings.stuck:
                yield worker, f"An engine thread has been in one step for {monotonic() - began:.0f} seconds."

    def trouble(self) -> str:
        """What is wrong with an engine thread; "" if nothing is."""
        return next((words for _, words in self.troubled()), "")

    def give_up(self) -> None:
        """End the rows of engine threads that will not go on: another server may answer them."""
        for worker, words in self.troubled():
            for ticket in worker.tickets:
                ticket.end(Unavailable(words, hint="Send the request again."))

    def submit(self, job: Job) -> None:
        """Queue a job's rows, all or none, each in the least busy thread."""
        with self.lock:
            if self.closing:
                raise Unavailable("The server is shutting down.", hint="Try another server.")
            waiting = self.waiting
            if waiting + len(job.tickets) > self.settings.max_queue:
                raise Full(
                    f"{waiting} rows are waiting; at most {self.settings.max_queue} may.", self.retry_after(waiting)
                )
            for ticket in job.tickets:
                min(self.workers, key=self.burden).take(ticket)

    def check_room(self) -> None:
        """Raise unless one more row would be taken: what a load balancer asks before it sends requests here."""
        if self.closing:
            raise Unavailable("The server is shutting down.", hint="Try another server.")
        if self.waiting >= self.settings.max_queue:
            raise Unavailable(
                f"{self.waiting} rows are waiting; at most {self.settings.max_queue} may.", hint="Try another server."
            )

    def burden(self, worker: Worker) -> int:
        """Positions of all rows of a thread."""
        return sum(count_positions(ticket.request) for ticket in worker.tickets)

    def retry_after(self, waiting: int) -> int:
        """Seconds until the queue has moved on, going by the rows answered last."""
        mean = sum(self.answered) / max(1, len(self.answered))
        return max(1, round(waiting * mean / self.settings.max_rows))

    def release(self, job: Job) -> None:
        """Forget a job before the next step, if it is not over."""
        job.cancelled = True
        for worker in self.workers:
            worker.wake()
        spent = [ticket.ended_at - ticket.queued_at for ticket in job.tickets if ticket.ended_at is not None]
        self.answered = [*self.answered, *spent][-32:]

    def stop(self, grace: float) -> None:
        """Accept no more, let rows run for ``grace`` seconds, then end them with what is settled."""
        with self.lock:
            self.closing = True
        end = monotonic() + grace
        for worker in self.workers:
            worker.close()
        for worker in self.workers:
            worker.thread.join(timeout=max(0.0, end - monotonic()))
        self.end_rows()

    def end_rows(self) -> None:
        """End every row with what is settled, or with an error where nothing is."""
        for worker in self.workers:
            for ticket in worker.tickets:
                ticket.end(None if ticket.event else WorkError("The server shut down before the answer began."))
            worker.wake()
