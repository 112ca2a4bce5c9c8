"""All engine threads of a server: which of them gets a row, how many rows may wait, how they end.

On a CPU one forward does not use several cores well, so there is an engine thread per core; one that works alone uses
them all. Elsewhere there is one.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING

import torch

from starr.errors import StarrError, WorkError
from starr.server.job import Job, Ticket
from starr.server.lane import cost
from starr.server.settings import Settings
from starr.server.worker import Worker

if TYPE_CHECKING:
    from starr.model.load import Model


class Full(StarrError):
    """The queue has no room."""

    status = 429

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message, hint="Try again later.")
        self.retry_after = retry_after


class Closing(StarrError):
    """The server takes nothing new."""

    status = 503


def engines_for(model: Model, settings: Settings) -> int:
    """As many as asked for, or one, or on a CPU one per core that we may use."""
    return settings.engines or (torch.get_num_threads() if model.device.type == "cpu" else 1)


class Pool:
    """Engine threads and what they share: the bound on rows that wait."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.model, self.settings = model, settings
        self.cores = torch.get_num_threads()
        count = engines_for(model, settings)
        self.workers = [Worker(model, settings, self.share_cores) for _ in range(count)]
        self.lock = threading.Lock()
        self.closing = False
        self.answered: list[float] = []  # seconds that the last rows took

    def start(self) -> None:
        for worker in self.workers:
            worker.thread.start()

    def share_cores(self) -> None:
        """Called by an engine thread before it steps: split the cores among those at work."""
        at_work = sum(worker.running > 0 for worker in self.workers)
        threads = max(1, self.cores // max(1, at_work))
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)

    @property
    def running(self) -> int:
        return sum(worker.running for worker in self.workers)

    @property
    def waiting(self) -> int:
        return sum(worker.waiting for worker in self.workers)

    def submit(self, job: Job) -> None:
        """Queue a job's rows, all or none, each where the least is to be done."""
        with self.lock:
            if self.closing:
                raise Closing("The server is shutting down.", hint="Ask another one.")
            waiting = self.waiting
            if waiting + len(job.tickets) > self.settings.max_queue:
                raise Full(f"{waiting} rows wait, the most is {self.settings.max_queue}.", self.retry_after(waiting))
            for ticket in job.tickets:
                min(self.workers, key=self.burden).take(ticket)

    def burden(self, worker: Worker) -> int:
        """Positions of all its rows."""
        return sum(cost(ticket.request, self.model.spec.max_length) for ticket in worker.tickets)

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
        """Take no more, let rows run for ``grace`` seconds, then end them with what is settled."""
        with self.lock:
            self.closing = True
        end = monotonic() + grace
        for worker in self.workers:
            worker.close()
        for worker in self.workers:
            worker.thread.join(timeout=max(0.0, end - monotonic()))
        for worker in self.workers:
            for ticket in worker.tickets:
                end_early(ticket)


def end_early(ticket: Ticket) -> None:
    ticket.end(None if ticket.event else WorkError("The server shut down before the answer began."))
