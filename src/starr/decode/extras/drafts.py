"""Several drafts of one row in one forward (freedave, arXiv:2510.00294).

Drafts are nested: note ``draft`` says in which one a mask is filled for the first time, ``draft.token`` with what.
Draft j is the canvas with all positions of drafts 1 to j filled. Letters: K rows of the guest, N drafts of all of them,
C columns, W window positions, O observed positions, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, window_index
from starr.decode.confidence import unsaturated
from starr.decode.extras.base import Guest, GuestStates
from starr.decode.forward import ForwardCall, rows_of, whole
from starr.decode.propose import ProposalRequest, propose
from starr.decode.request import Request
from starr.decode.view import DRAFT, DRAFT_TOKEN, Decision, draft_notes

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.model.network.transformer import KVBuffer


class Drafts(Guest):
    """Signal ``draft``: which drafts there are, and what the model predicts of each."""

    claims: ClassVar[bool] = True

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        flags = [(r.options.eos == "never", r.options.eos == "last") for r in self.requests]
        self.never, self.late = torch.tensor(flags, device=model.device).unbind(1)
        self.counts: list[int] = []  # drafts of each row in the coming forward

    @classmethod
    def serves(cls, request: Request) -> bool:
        """Drafts are whole rows of tokens and masks, checked by the model's own predictions, greedy and free."""
        chance = request.options.temperature > 0 or request.options.guidance > 0
        whole_rows = not request.cache.buffered and request.blocks is None and not request.options.smoothing
        return request.strategy.states() > 1 and whole_rows and not chance and request.constraint is None

    @classmethod
    def begin(cls, requests: Sequence[Request], canvas: Canvas) -> Mapping[str, Tensor]:
        number, fraction = torch.zeros_like(canvas.tokens), torch.zeros_like(canvas.confidence)
        notes = {DRAFT: number, DRAFT_TOKEN: number}
        for j in range(1, max(request.strategy.states() for request in requests if cls.serves(request))):
            notes |= dict(zip(draft_notes(j), (number, fraction), strict=True))
        return notes

    def measure(self, canvas: Canvas, buffer: KVBuffer | None) -> Canvas:
        """How many drafts each row has crosses to the host: a row without one costs one row."""
        inside = canvas.in_window & canvas.masked
        note = torch.where(inside, canvas.notes[DRAFT], 0)
        self.counts = note[self.rows].amax(dim=1).tolist()
        return canvas.noted({DRAFT: note})

    def forward(self, call: ForwardCall, wanted: Tensor) -> GuestStates:
        canvas, shift = call.canvas, self.model.spec.shift
        tokens, length, window = rows_of(self.rows, canvas.tokens, canvas.length, call.window)
        first, guess = rows_of(self.rows, canvas.notes[DRAFT], canvas.notes[DRAFT_TOKEN])
        row, number = self.places()
        filled = (first[row] > 0) & (first[row] <= number[:, None])
        drafts = torch.where(filled, guess[row], tokens[row])
        sizes = [call.total[place] for place in self.order]
        sizes += [sizes[k] for k, count in enumerate(self.counts) for _ in range(count)]
        seen = (window - 1).clamp(min=0) if shift else window
        both = torch.cat([wanted, seen], dim=1)
        every = torch.cat([both, both[row]])
        tokens, length = torch.cat([tokens, drafts]), torch.cat([length, length[row]])
        states, own = whole(self.model.net, tokens, length, sizes, every, None), len(self.order)
        return GuestStates(states[:own, : wanted.shape[1]], states[own:, wanted.shape[1] :])

    def places(self) -> tuple[Tensor, Tensor]:
        """(N,) each: the guest's row that a draft belongs to, and its number from 1 on."""
        pairs = [(k, number) for k, count in enumerate(self.counts) for number in range(1, count + 1)]
        found = torch.tensor(pairs, dtype=torch.int64, device=self.rows.device).view(-1, 2)
        return found[:, 0], found[:, 1]

    def observe(self, canvas: Canvas, window: Tensor, states: Tensor | None) -> Canvas:
        """Predictions of every draft as notes, by the same rules as those of the canvas."""
        assert states is not None
        if not len(states):
            return canvas
        row, number = self.places()
        where, place = window[self.rows][row], self.rows[row]
        token, sureness = self.predictions(canvas, where, row, states)
        notes = {}
        for j in range(1, max(self.counts) + 1):
            some = number == j
            for name, found in zip(draft_notes(j), (token, sureness), strict=True):
                at = (place[some][:, None], where[some])
                notes[name] = canvas.notes[name].index_put(at, found[some])
        return canvas.noted(notes)

    def predictions(self, canvas: Canvas, where: Tensor, row: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """(N, W) proposals and sureness at the columns ``where`` (N, W), from states (N, W, D)."""
        spec, shape = self.model.spec, where.shape
        banned = self.never[row][:, None] | canvas.endless[self.rows[row]].gather(1, where)
        asked = ProposalRequest(
            spec.mask_id, torch.zeros_like(where).reshape(-1), banned=banned.reshape(-1), banned_ids=spec.eos_ids
        )
        found = propose(self.model.net.head, states.flatten(0, 1), asked, spec.shape.vocab_size)
        assert found.odds is not None
        ends = torch.isin(found.token, torch.tensor(spec.eos_ids, device=where.device)).view(shape)
        sure = unsaturated(found.confidence, found.odds).view(shape)
        return found.token.view(shape), sure.masked_fill(ends & self.late[row][:, None], 0.0)

    def apply(self, canvas: Canvas, decision: Decision) -> Canvas:
        """The drafts of the next forward, where the window then still is."""
        notes = {}
        window = window_index(canvas, decision.action.shape[1])[self.rows]
        for name in (DRAFT, DRAFT_TOKEN):
            blank = canvas.notes[name].clone()
            blank[self.rows] = 0
            notes[name] = blank.index_put((self.rows[:, None], window), decision.extras[name][self.rows])
        return canvas.noted(notes)

    def positions(self, place: int, length: int, width: int) -> int:
        return self.counts[self.order.index(place)] * length
