"""A worker process: one model and one engine; it takes chunks of work and gives results as they finish.

A chunk that raises is decoded again item by item, so that one bad item fails alone. Nothing here knows Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from starr.errors import StarrError

if TYPE_CHECKING:
    from starr.evals.run.runs import EvalSettings, Run
    from starr.evals.tasks import Task
    from starr.model.load import Model
    from starr.model.spec import Habits
    from starr.options import Options

GATHER_SECONDS = 0.2  # between two messages of a worker: many small results go together

Decoder = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The arguments of ``starr.load``, and the threads a worker may use on a CPU."""

    source: str | None = None
    device: str | None = None
    dtype: str | None = None
    threads: int = 1
    weak_sandbox: bool = False  # model code may run where no namespaces can be made


def load(loading: ModelSource) -> Model:
    """Load the model in a process that may use this many threads."""
    import torch

    import starr
    from starr.model.device import choose_device

    torch.set_num_threads(loading.threads)
    # processes may have different CPUs, each with a fastest dtype of its own; their results must have one
    common = "float32" if choose_device(loading.device).type == "cpu" else None
    return starr.load(loading.source, device=loading.device, dtype=loading.dtype or common)


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that cannot be decoded."""

    message: str


class WorkerProcess:
    """A model in a process of its own. If it cannot be loaded, ``ready`` says so, not the constructor."""

    def __init__(self, loading: ModelSource) -> None:
        self.error: Exception | None = None
        try:
            self.begin(loading)
        except Exception as error:
            self.error = error

    def begin(self, loading: ModelSource) -> None:
        """Load the model."""
        self.model = load(loading)

    def ready(self) -> str:
        """Return "" once the model is loaded, else why it cannot be."""
        if self.error is None:
            return ""
        return str(self.error) if isinstance(self.error, StarrError) else f"{type(self.error).__name__}: {self.error}"

    def chunk(self, key: Any, indices: Sequence[int]) -> Iterator[list[tuple[int, Any]]]:
        """Yield results of some items by index, a few at a time, in the order in which they finish."""
        yield from gather(decode_all(self.decoder(key), indices), GATHER_SECONDS)

    def decoder(self, key: Any) -> Decoder:
        """Make a function from indices to (index, result) in any order."""
        raise NotImplementedError


class EvalWorker(WorkerProcess):
    """Decodes and grades items of a benchmark; a key is a run."""

    def __init__(self, loading: ModelSource, task: Task, rows: int, shared: dict[str, Any]) -> None:
        self.task, self.rows, self.shared = task, rows, shared
        super().__init__(loading)
        if loading.weak_sandbox:
            from starr.evals.grading.sandbox import permit_weak

            permit_weak()

    def settings(self) -> EvalSettings:
        """Return what all runs share, with this worker's model."""
        from starr.evals.run.runs import settings_for

        return settings_for(self.model, self.task, **self.shared)

    def habits(self) -> Habits:
        """Return how the model's authors decode it."""
        return self.model.spec.habits

    def decoder(self, key: Run) -> Decoder:
        from starr.evals.run.runner import decode_chunk

        settings = self.settings()

        def decode(indices: Sequence[int]) -> Iterator[tuple[int, Any]]:
            items = [(index, self.task.items[index]) for index in indices]
            for sample in decode_chunk(self.model, self.task, settings, key, items, self.rows):
                yield sample.index, sample

        return decode


class PromptWorker(WorkerProcess):
    """Decodes prompts; the key is not used."""

    def __init__(self, loading: ModelSource, prompts: Sequence[Any], rows: int, options: Options) -> None:
        self.prompts, self.rows, self.options = prompts, rows, options
        super().__init__(loading)

    def decoder(self, key: Any) -> Decoder:
        from starr.api import build_requests
        from starr.evals.run.runner import decode as decoded

        def decode(indices: Sequence[int]) -> Iterator[tuple[int, Any]]:
            requests = build_requests(self.model, [self.prompts[index] for index in indices], self.options)
            for number, generation, _ in decoded(self.model, requests, self.rows):
                yield indices[number], generation.to_dict()

        return decode


def decode_all(decode: Decoder, indices: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Yield all results; after an error the missing ones one by one, with a Failure where that fails again."""
    left = list(indices)
    try:
        for index, result in decode(indices):
            left.remove(index)
            yield index, result
    except Exception:
        for index in list(left):
            yield index, decode_alone(decode, index)


def decode_alone(decode: Decoder, index: int) -> Any:
    """Decode one item; return its result or its Failure."""
    try:
        return next(iter(decode([index])))[1]
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}" if not isinstance(error, StarrError) else str(error))


def gather(results: Iterator[tuple[int, Any]], seconds: float) -> Iterator[list[tuple[int, Any]]]:
    """Gather the results that finish within ``seconds`` into lists."""
    waiting: list[tuple[int, Any]] = []
    last = monotonic()
    for result in results:
        waiting.append(result)
        if monotonic() - last >= seconds:
            yield waiting
            waiting, last = [], monotonic()
    if waiting:
        yield waiting
