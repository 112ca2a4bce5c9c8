"""The loop's hooks for features of few strategies, caches or stop rules.

A guest serves the rows whose request wants it, and only those: a strategy names the guests that it needs
(``Strategy.needs``), other guests look at the request. Guests are made anew whenever rows join or leave. Each hook
takes the value of its step and returns it, changed or not; ``ask`` hands the value from guest to guest. A batch without
guests calls no hook. What a guest remembers of a row between steps are *notes* on the canvas: tensors (B,), (B, C) or
(B, C, D), which follow the row. What it tells its strategy comes in ``StepView.extras``, what the strategy asks of it
in ``Decision.extras``.

    hook      before or after                        what a guest may do
    --------  -------------------------------------  ---------------------------------------------------------------
    plan      before the next query is planned       query or observe more positions, ask for extra queries
    prepare   before the forward                     add extra queries, drafts or input embeddings, count their cost
    propose   before the head is read                edit logits, read more of the distribution
    observe   after the proposals are remembered     note what the forward told
    amend     after ``enforce``                      change actions and tokens
    apply     after the actions are carried out      change the canvas, keep a full window open

Letters: B rows, C columns, K rows of the guest, W window positions, O observed positions, D width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import torch

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas
    from starr.decode.enforce import Step
    from starr.decode.forward import ForwardCall, Seen
    from starr.decode.propose import ProposalRequest
    from starr.decode.query import Wishes
    from starr.decode.request import Request
    from starr.model.load import Model

Hook = Literal["plan", "prepare", "propose", "observe", "amend", "apply"]
T = TypeVar("T")


class Guest:
    """A feature behind the hooks; see the module. ``name`` is what a strategy needs it by."""

    name: ClassVar[str] = ""
    queries: ClassVar[bool] = False  # it asks for extra queries, which not every network has

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        self.model, self.order = model, rows
        self.requests = [requests[row] for row in rows]
        self.rows = torch.tensor(rows, dtype=torch.int64, device=model.device)

    @classmethod
    def serves(cls, request: Request) -> bool:
        """Whether the request wants this guest."""
        return request.strategy.needs().get(cls.name, 0) > 0

    @classmethod
    def check(cls, request: Request) -> None:
        """Raise InputError if it cannot serve a request that wants it."""

    def plan(self, wishes: Wishes) -> Wishes:
        """Change what the next forward computes."""
        return wishes

    def prepare(self, call: ForwardCall) -> ForwardCall:
        """Change the input of the forward."""
        return call

    def propose(self, request: ProposalRequest, call: ForwardCall) -> ProposalRequest:
        """Change what is asked of the model's head at the observed positions."""
        return request

    def observe(self, canvas: Canvas, seen: Seen) -> Canvas:
        """Note what the forward told."""
        return canvas

    def amend(self, step: Step) -> Step:
        """Change the actions that are carried out. It keeps a commit where there was one, or bounds such steps."""
        return step

    def apply(self, canvas: Canvas, step: Step) -> Canvas:
        """Change the canvas after the actions."""
        return canvas


def invite(kinds: Iterable[type[Guest]], model: Model, requests: Sequence[Request]) -> list[Guest]:
    """The guests that some of the requests want, in the order of ``kinds``."""
    wanted = {kind: [i for i, request in enumerate(requests) if kind.serves(request)] for kind in kinds}
    return [kind(model, requests, rows) for kind, rows in wanted.items() if rows]


def ask(guests: Iterable[Guest], hook: Hook, value: T, *more: object) -> T:
    """The value after the hook of every guest, one after another."""
    for guest in guests:
        value = getattr(guest, hook)(value, *more)
    return value
