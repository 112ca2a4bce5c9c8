"""What runs in a worker: one model, one engine, chunks of work in, results out as they finish. Knows nothing of Ray.

A chunk that raises is decoded again item by item, so that one bad item fails alone.
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

GATHER = 0.2  # seconds between two messages of a worker: many small results go together

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
    """The model, for a process that may use this many threads."""
    import torch

    import starr
    from starr.model.device import choose_device

    torch.set_num_threads(loading.threads)
    # processes may have different CPUs, each with a fastest dtype of its own; their results must be of one
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
        self.model = load(loading)

    def ready(self) -> str:
        """ "" once the model is loaded, else why it cannot be."""
        if self.error is None:
            return ""
        return str(self.error) if isinstance(self.error, StarrError) else f"{type(self.error).__name__}: {self.error}"

    def chunk(self, key: Any, places: Sequence[int]) -> Iterator[list[tuple[int, Any]]]:
        """Results of some items by place, a few at a time, in the order in which they finish."""
        yield from gathered(alone_if_it_fails(self.decoder(key), places), GATHER)

    def decoder(self, key: Any) -> Decoder:
        """A function from places to (place, result) in any order."""
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
        """What all runs share, as this worker's model has it."""
        from starr.evals.run.runs import settings_for

        return settings_for(self.model, self.task, **self.shared)

    def habits(self) -> Habits:
        """How the model's authors decode it."""
        return self.model.spec.habits

    def decoder(self, key: Run) -> Decoder:
        from starr.evals.run.runner import decode_chunk

        settings = self.settings()

        def decode(places: Sequence[int]) -> Iterator[tuple[int, Any]]:
            items = [(place, self.task.items[place]) for place in places]
            for sample in decode_chunk(self.model, self.task, settings, key, items, self.rows):
                yield sample.index, sample

        return decode


class PromptWorker(WorkerProcess):
    """Decodes prompts; the key plays no part."""

    def __init__(self, loading: ModelSource, prompts: Sequence[Any], rows: int, options: Options) -> None:
        self.prompts, self.rows, self.options = prompts, rows, options
        super().__init__(loading)

    def decoder(self, key: Any) -> Decoder:
        from starr.api import build_requests
        from starr.evals.run.runner import decode as decoded

        def decode(places: Sequence[int]) -> Iterator[tuple[int, Any]]:
            requests = build_requests(self.model, [self.prompts[place] for place in places], self.options)
            for number, generation, _ in decoded(self.model, requests, self.rows):
                yield places[number], generation.to_dict()

        return decode


def alone_if_it_fails(decode: Decoder, places: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """All results; after an error those that are missing one by one, with a Failure where that fails again."""
    left = list(places)
    try:
        for place, result in decode(places):
            left.remove(place)
            yield place, result
    except Exception:
        for place in list(left):
            yield place, alone(decode, place)


def alone(decode: Decoder, place: int) -> Any:
    """One item's result, or its Failure."""
    try:
        return next(iter(decode([place])))[1]
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}" if not isinstance(error, StarrError) else str(error))


def gathered(results: Iterator[tuple[int, Any]], seconds: float) -> Iterator[list[tuple[int, Any]]]:
    """The results in lists: what finished within ``seconds`` goes together."""
    waiting: list[tuple[int, Any]] = []
    last = monotonic()
    for result in results:
        waiting.append(result)
        if monotonic() - last >= seconds:
            yield waiting
            waiting, last = [], monotonic()
    if waiting:
        yield waiting
