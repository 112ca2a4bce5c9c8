"""Visit the states that a rule will meet, and see which proposals stood in the end.

Each prompt is decoded by some policy up to a random step. From that very state the run goes on carefully (``threshold``
0.95). The features of all masks that the careful run would not commit at once are taken there, and in one of the later
states, since the same end follows from it. A proposal stood if the final canvas has it at its position. Behind the
final end-of-text an end-of-text stands, and nothing else does. One that did not stand is *harmful* if it is implausible
behind the final text before it (see ``sound``): a wrong digit is, another wording is not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from starr.decode.engine import Engine
from starr.decode.ranking import with_best
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.calibrated.features import SEEN, TOKEN, features_of, no_past, proposals_near, remember
from starr.decode.view import Carry, Decision, StepView, commits
from starr.fit.calibrate.sound import implausible_at, until_end

if TYPE_CHECKING:
    from starr.decode.request import Request
    from starr.decode.result import Event
    from starr.model.load import Model

CAREFUL = 0.95
LATER = 6  # steps, at most
ROUNDS = 2  # of visits to each prompt
POLICIES = ("threshold:tau=0.5", "threshold:tau=0.7", "threshold:tau=0.9", "hierarchy", "factor:factor=1.0")
OWN = "own."  # the prefix of the policy's memory in the carry
Watch = Callable[[], None]  # called after every decoded row


@dataclass(frozen=True, slots=True)
class Visit:
    """One state: M doubtful masks, and what became of their proposals."""

    prompt: int
    features: Tensor  # (M, F) float32
    proposals: Tensor  # (M, P) int64: those nearby and its own, as ``proposals_near`` gives them
    stood: Tensor  # (M,) bool
    harmful: Tensor  # (M,) bool: did not stand, and would not fit


@dataclass(frozen=True, slots=True)
class Seen:
    """What was recorded at one step."""

    features: Tensor  # (M, F)
    near: Tensor  # (M, P)
    places: list[int]  # on the canvas
    proposals: list[int]


@dataclass(slots=True)
class Progress:
    """How far a row has come: decisions made, and where its window begins on the canvas."""

    steps: int = 0
    offset: int = 0
    width: int = 0

    def enter(self, view: StepView) -> int:
        """The number of this decision; a new window begins where the last one ended."""
        if int(view.step[0]) == 0:
            self.offset, self.width = self.offset + self.width, int(view.width[0])
        self.steps += 1
        return self.steps - 1


@dataclass(frozen=True)
class Explorer(Strategy):
    """Follows a policy for ``steps`` steps, records the state, goes on carefully, records one ``later`` state."""

    name: ClassVar[str] = "explorer"
    paper: ClassVar[str] = "-"
    policy: Strategy
    steps: int
    later: int  # steps behind the first state
    ends: tuple[int, ...]
    prompt: int  # makes every row a group of its own
    found: list[Seen] = field(default_factory=list, compare=False, repr=False)
    progress: Progress = field(default_factory=Progress, compare=False, repr=False)

    @property
    def signals(self) -> frozenset[str]:  # type: ignore[override]
        return self.policy.signals | {"margin", "entropy"}

    def __post_init__(self) -> None: ...

    def begin(self, view: StepView) -> Carry:
        return {**no_past(view), **{OWN + name: value for name, value in self.policy.begin(view).items()}}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        own = {name.removeprefix(OWN): value for name, value in carry.items() if name.startswith(OWN)}
        after = dict(remember(view, carry))
        step = self.progress.enter(view)
        if step < self.steps:
            decision, own_after = self.policy.decide(view, own)
            return decision, after | {OWN + name: value for name, value in own_after.items()}
        if step in (self.steps, self.steps + self.later):
            self.found.append(self.record(view, carry))
        careful = with_best(view.masked & (view.confidence >= CAREFUL), view.confidence, view.masked)
        return Decision(commits(careful)), after | {OWN + name: value for name, value in own.items()}

    def record(self, view: StepView, carry: Carry) -> Seen:
        """The state's doubtful masks; the row is alone in its group."""
        places = (view.masked[0] & (view.confidence[0] < CAREFUL)).nonzero()[:, 0]
        features, near = features_of(view, carry, self.ends)[0, places], proposals_near(view)[0, places]
        where = (places + self.progress.offset).tolist()
        return Seen(features.cpu(), near.cpu(), where, view.proposal[0, places].tolist())


def visit(
    model: Model,
    requests: Sequence[Request],
    policies: Sequence[Strategy],
    *,
    rows: int,
    seed: int,
    watch: Watch = lambda: None,
) -> Iterator[Visit]:
    """The visits of each request, by a policy and up to a step that are drawn from ``seed`` and its place.

    A row that ended before its step has no state to tell of.
    """
    explorers = []
    for place, request in enumerate(requests):
        draw = random.Random(f"{seed} {place}")
        policy = draw.choice(policies).bind(model)
        steps = min(int(draw.expovariate(1 / 4)), request.length - 1)
        explorers.append(Explorer(policy, steps, draw.randint(1, LATER), model.spec.eos_ids, place))
    rows_asked = [request.change(strategy=own) for request, own in zip(requests, explorers, strict=True)]
    for request, event in zip(rows_asked, last_events(model, rows_asked, rows, watch), strict=True):
        yield from outcomes(model, request, until_end(event.tokens, model.spec.eos_ids))


def outcomes(model: Model, request: Request, text: Sequence[int]) -> Iterator[Visit]:
    """What became of the proposals that a row's explorer recorded, in a final text as ``until_end`` gives it."""
    explorer, ends = request.strategy, model.spec.eos_ids
    assert isinstance(explorer, Explorer)
    for seen in explorer.found:
        pairs = list(zip(seen.places, seen.proposals, strict=True))
        stood = [text[place] == token or (token in ends and text[place] in ends) for place, token in pairs]
        odd = implausible_at(model, request.tokens[: request.start], text,
                             [pair for pair, kept in zip(pairs, stood, strict=True) if not kept])  # fmt: skip
        harmful = iter(odd)
        labels = torch.tensor([[kept, not kept and next(harmful)] for kept in stood], dtype=torch.bool).view(-1, 2)
        yield Visit(explorer.prompt, seen.features, seen.near, labels[:, 0], labels[:, 1])


def last_events(model: Model, requests: Sequence[Request], rows: int, watch: Watch = lambda: None) -> list[Event]:
    """The last event of every request, in order."""
    engine = Engine(model, max_rows=rows)
    found: dict[int, Event] = {}
    order = [engine.add(request) for request in requests]
    while engine.busy:
        for event in engine.step():
            if event.done:
                watch()
                found[event.id] = event
    return [found[id] for id in order]


def as_rows(visits: Sequence[Visit]) -> dict[str, Any]:
    """Visits as plain tensors, for a file: features (N, F), proposals (N, P), stood, harmful and prompt (N,)."""
    no = torch.zeros(0).bool()
    some = [Visit(0, torch.zeros(0, len(SEEN)), torch.zeros(0, len(TOKEN), dtype=torch.int64), no, no), *visits]
    return {
        "features": torch.cat([v.features for v in some]),
        "proposals": torch.cat([v.proposals for v in some]),
        "stood": torch.cat([v.stood for v in some]),
        "harmful": torch.cat([v.harmful for v in some]),
        "prompt": torch.cat([torch.full((len(v.stood),), v.prompt) for v in some]),
    }
