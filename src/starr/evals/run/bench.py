"""What all reproductions share: a model, a task, and one store of samples, so that no run is decoded twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starr.decode.strategies.calibrated.rule import FittedRule, find_rule
from starr.decode.strategies.learn2pd.filter import find_filter
from starr.errors import InputError
from starr.evals.run.evaluate import Decoder, Local, left
from starr.evals.run.results import summarise
from starr.evals.run.runner import Workload, decode
from starr.evals.run.runs import EvalSettings, Run, choose, make_runs, requests_for
from starr.evals.run.store import Sample, Store
from starr.evals.tasks import Item, Task

if TYPE_CHECKING:
    from starr.decode.trace import Trace
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class Measured:
    """One run over the bench's items."""

    run: Run
    samples: Sequence[Sample]
    figures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """``limit`` items of a task, decoded with a model; samples are kept in ``store`` between results.

    ``fewer`` gives a run that costs much a smaller number of items, by its name.
    """

    model: Model
    task: Task
    settings: EvalSettings
    store: Store
    limit: int | None = None
    rows: int = 8
    block_length: int = 32
    quiet: bool = False
    decoder: Decoder | None = None  # None: this process
    fewer: Mapping[str, int] = field(default_factory=dict)
    traced: dict[tuple[Run, int], list[Trace]] = field(default_factory=dict)

    @property
    def items(self) -> list[tuple[int, Item]]:
        """The first ``limit`` items with their places."""
        return choose(self.task, self.limit)

    @property
    def checkpoint(self) -> str:
        """The model with its weights and dtype, as pages name it."""
        return f"{self.settings.model} (weights {self.settings.weights}, {self.settings.dtype})"

    @property
    def rule(self) -> FittedRule | None:
        """The rule that ships for the model, where one does."""
        try:
            return find_rule("auto", self.model)
        except InputError:
            return None

    @property
    def has_filter(self) -> bool:
        """Whether a filter of ``learn2pd`` ships for the model."""
        try:
            find_filter("auto", self.model)
        except InputError:
            return False
        return True

    def run(
        self,
        strategy: str,
        cache: str = "none",
        block_length: int | None = None,
        ice: str | None = None,
        verify: float = 0.0,
    ) -> Run:
        """A run from text forms."""
        return make_runs([strategy], [cache], block_length, ice, [verify])[0]

    def measure(self, runs: Sequence[Run]) -> list[Measured]:
        """Decode what is missing of the bench's items; figures of each run, in order."""
        return self.measure_at(runs, range(len(self.items)))

    def measure_at(self, runs: Sequence[Run], wanted: Sequence[int]) -> list[Measured]:
        """The same for some of the items, by their places."""
        for work in self.works(runs, wanted):
            if left(work, self.store):
                (self.decoder or self.local).decode(work, self.store)
        found = [self.samples(run, wanted) for run in runs]
        return [Measured(run, samples, summarise(samples)) for run, samples in zip(runs, found, strict=True)]

    @property
    def local(self) -> Decoder:
        """Decodes in this process."""
        return Local(self.model, self.task, self.settings, "the same command continues", self.quiet)

    def works(self, runs: Sequence[Run], wanted: Sequence[int]) -> list[Workload]:
        """What to decode: runs with the same number of items together."""
        chosen = self.items
        groups: dict[int, list[Run]] = {}
        for run in runs:
            groups.setdefault(self.count(run), []).append(run)
        return [
            Workload([chosen[place] for place in wanted if place < count], some, self.rows)
            for count, some in groups.items()
        ]

    def count(self, run: Run) -> int:
        """How many of the first items a run decodes."""
        return min(len(self.items), self.fewer.get(run.name, len(self.items)))

    def samples(self, run: Run, wanted: Sequence[int]) -> list[Sample]:
        """Return a run's samples at some places of the bench."""
        chosen, count = self.items, self.count(run)
        places = {chosen[place][0] for place in wanted if place < count}
        return [sample for sample in self.store.of(run.name) if sample.index in places]

    def traces(self, run: Run, count: int) -> list[Trace]:
        """Full traces of the first ``count`` items, in order; decoded once for all results."""
        if (run, count) not in self.traced:
            self.traced[run, count] = self.decode_traces(run, count)
        return self.traced[run, count]

    def decode_traces(self, run: Run, count: int) -> list[Trace]:
        """Traces of the first items, in order."""
        requests = requests_for(self.model, [item for _, item in self.items[:count]], run, self.settings, trace=True)
        found = {place: generation.trace for place, generation, _ in decode(self.model, requests, self.rows)}
        return [trace for place in range(len(requests)) if (trace := found[place]) is not None]


def difference(pair: dict[str, Any]) -> str:
    """A paired difference in points, with its interval."""
    low, high = pair["interval"]
    return f"{100 * pair['difference']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
