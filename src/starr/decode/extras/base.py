"""The loop's one hook for features that only one strategy, cache or stop rule uses.

A guest serves the rows whose request wants it, and only those. It is remade whenever rows join or leave. Its methods
are named after the steps of the picture; each passes its argument through unless a guest overrides it. What it must
remember of a row between steps are *notes* on the canvas: tensors (B,), (B, C) or (B, C, D), which follow the row. What
it tells its strategy comes in ``StepView.extras``, what the strategy asks of it in ``Decision.extras``.

    step        method        what a guest may do                                      used by
    ----------  ------------  -------------------------------------------------------  ------------------
    request     check         refuse a request that it cannot serve                    shadow, growth
    canvas      begin         write the first notes of new rows                        extra steps
    query       measure       look at K/V before the next query is planned             movement, drafts
    query       query         change the positions that the next forward recomputes    sealed blocks, second look
    query       reach         say how far a forward looks                              sealed blocks
    query       earlier       count the positions that only give K/V                   sealed blocks
    query       observes      have more positions predicted than the window's          outlook
    forward     embed         add to what positions are to the net                     smoothing
    forward     forward       compute the states of its rows itself (``claims``)       shadow, drafts
    propose     propose       restrict what is proposed, or ask for more               constraints, smoothing
    observe     remember      note what was proposed                                   smoothing
    observe     observe       note what the forward told                               shadow, drafts
    enforce     frees         let a step go without a commit                           growth
    enforce     amend         change what is about to be done                          sealed blocks, constraints
    apply       apply         change the canvas after the step                         growth, shortening, drafts
    advance     keeps_open    keep a window without masks open                         extra steps
    (cost)      positions     positions that it computes besides the query             shadow, drafts, movement

Letters: B rows, C columns, K rows of the guest, W window positions, O observed positions, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from starr.decode.canvas import Canvas, Places
    from starr.decode.forward import ForwardCall
    from starr.decode.propose import ProposalRequest, Proposals
    from starr.decode.request import Request
    from starr.decode.view import Decision, StepView
    from starr.model.load import Model
    from starr.model.network.transformer import KVBuffer


@dataclass(frozen=True, slots=True)
class GuestStates:
    """Hidden states that a guest computed for its rows."""

    observed: Tensor  # (K, O, D): of the observed positions, as every forward gives them
    more: Tensor | None = None  # (K, M, D): what the guest wants besides, for its own ``observe``


class Guest:
    """A feature behind the hook; see the module. ``claims``: it computes the states of its rows itself."""

    claims: ClassVar[bool] = False

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        self.model, self.order = model, rows
        self.requests = [requests[row] for row in rows]
        self.rows = torch.tensor(rows, dtype=torch.int64, device=model.device)

    @classmethod
    def serves(cls, request: Request) -> bool:
        """Whether the request wants this guest."""
        raise NotImplementedError

    @classmethod
    def check(cls, request: Request) -> None:
        """Raise InputError if it cannot serve a request that wants it."""

    @classmethod
    def begin(cls, requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
        """The notes of new rows, (B,) or (B, C); ``requests`` are all rows of ``canvas``."""
        return {}

    def measure(self, canvas: Canvas, buffer: KVBuffer | None) -> Canvas:
        """The canvas with notes that the next query is planned by."""
        return canvas

    def query(self, canvas: Canvas, query: Tensor) -> Tensor:
        """(B, C) bool: the positions of the next forward."""
        return query

    def observes(self, canvas: Canvas, wanted: Tensor) -> Tensor:
        """(B, C) bool: the positions that get a prediction, as far as the next forward queries them."""
        return wanted

    def reach(self, canvas: Canvas) -> Tensor | None:
        """(B,) int64: columns from here on are seen by no query; None for the whole row."""
        return None

    def earlier(self, canvas: Canvas, query: Tensor) -> Tensor | None:
        """(B,) int64: queried positions that are computed for their K/V alone."""
        return None

    def embed(self, canvas: Canvas) -> Tensor | None:
        """(B, C, D): what comes on top of the tokens' embeddings, zeros in rows of others; None for nothing."""
        return None

    def forward(self, call: ForwardCall, wanted: Tensor) -> GuestStates:
        """The states of its rows at the columns ``wanted`` (K, O); called where the guest ``claims`` its rows."""
        raise NotImplementedError

    def propose(self, request: ProposalRequest, canvas: Canvas, observed: Places) -> ProposalRequest:
        """What is asked of the model's head at the ``observed`` positions."""
        return request

    def remember(self, canvas: Canvas, observed: Places, found: Proposals) -> Canvas:
        """The canvas with notes of what was proposed at the ``observed`` positions."""
        return canvas

    def observe(self, canvas: Canvas, window: Tensor, states: Tensor | None) -> Canvas:
        """The canvas with notes of what its forward showed: ``states`` are ``GuestStates.more``."""
        return canvas

    def frees(self, decision: Decision) -> Tensor | None:
        """(B,) bool: rows whose step need not commit; the guest bounds how often."""
        return None

    def amend(self, action: Tensor, written: Tensor, view: StepView, canvas: Canvas) -> tuple[Tensor, Tensor]:
        """Actions and tokens (B, W) that will be carried out."""
        return action, written

    def apply(self, canvas: Canvas, decision: Decision) -> Canvas:
        """The canvas after the step's actions."""
        return canvas

    def keeps_open(self, canvas: Canvas, acted: Tensor) -> tuple[Canvas, Tensor | None]:
        """(B,) bool: windows that stay open without masks; ``acted`` (B,) bool: the step changed something."""
        return canvas, None

    def positions(self, place: int, length: int, width: int) -> int:
        """Positions that a step of the row at this place costs besides its query; ``width`` is of its window."""
        return 0


class Guests:
    """The guests of the rows now in the batch: every method asks them one after another."""

    def __init__(self, kinds: Sequence[type[Guest]], model: Model, requests: Sequence[Request]) -> None:
        wanted = {kind: [i for i, request in enumerate(requests) if kind.serves(request)] for kind in kinds}
        self.present = [kind(model, requests, rows) for kind, rows in wanted.items() if rows]

    def claim(self, request: Request) -> bool:
        """Whether a guest computes the states of the request's row."""
        return any(guest.claims and guest.serves(request) for guest in self.present)

    @property
    def claiming(self) -> list[Guest]:
        return [guest for guest in self.present if guest.claims]

    def measure(self, canvas: Canvas, buffer: KVBuffer | None) -> Canvas:
        for guest in self.present:
            canvas = guest.measure(canvas, buffer)
        return canvas

    def query(self, canvas: Canvas, query: Tensor) -> Tensor:
        for guest in self.present:
            query = guest.query(canvas, query)
        return query

    def observes(self, canvas: Canvas, wanted: Tensor) -> Tensor:
        for guest in self.present:
            wanted = guest.observes(canvas, wanted)
        return wanted

    def reach(self, canvas: Canvas) -> Tensor:
        found = [guest.reach(canvas) for guest in self.present]
        return next((reach for reach in found if reach is not None), canvas.length)

    def earlier(self, canvas: Canvas, query: Tensor) -> Tensor:
        found = [guest.earlier(canvas, query) for guest in self.present]
        return next((count for count in found if count is not None), torch.zeros_like(canvas.length))

    def embed(self, canvas: Canvas) -> Tensor | None:
        found = [guest.embed(canvas) for guest in self.present]
        return next((added for added in found if added is not None), None)

    def propose(self, request: ProposalRequest, canvas: Canvas, observed: Places) -> ProposalRequest:
        for guest in self.present:
            request = guest.propose(request, canvas, observed)
        return request

    def remember(self, canvas: Canvas, observed: Places, found: Proposals) -> Canvas:
        for guest in self.present:
            canvas = guest.remember(canvas, observed, found)
        return canvas

    def observe(self, canvas: Canvas, window: Tensor, states: Mapping[Guest, Tensor | None]) -> Canvas:
        for guest in self.present:
            canvas = guest.observe(canvas, window, states.get(guest))
        return canvas

    def free(self, decision: Decision, literal: Tensor) -> Tensor:
        """(B,) bool: rows without the progress rules: ``literal`` ones, and those that a guest frees."""
        for guest in self.present:
            freed = guest.frees(decision)
            literal = literal if freed is None else literal | freed
        return literal

    def amend(self, action: Tensor, written: Tensor, view: StepView, canvas: Canvas) -> tuple[Tensor, Tensor]:
        for guest in self.present:
            action, written = guest.amend(action, written, view, canvas)
        return action, written

    def apply(self, canvas: Canvas, decision: Decision) -> Canvas:
        for guest in self.present:
            canvas = guest.apply(canvas, decision)
        return canvas

    def keeps_open(self, canvas: Canvas, acted: Tensor) -> tuple[Canvas, Tensor | None]:
        found: Tensor | None = None
        for guest in self.present:
            canvas, kept = guest.keeps_open(canvas, acted)
            if kept is not None:
                found = kept if found is None else found | kept
        return canvas, found

    def positions(self, place: int, length: int, width: int) -> int:
        """Positions that a step of the row at this place costs besides its query, over all guests that serve it."""
        return sum(guest.positions(place, length, width) for guest in self.present if place in guest.order)
