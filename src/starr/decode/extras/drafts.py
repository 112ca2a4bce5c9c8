"""Several drafts of one row in one forward (freedave, arXiv:2510.00294).

Drafts are nested: note ``draft`` says in which one a mask is filled for the first time, ``draft.token`` with what.
Draft j is the canvas with all positions of drafts 1 to j filled, a whole extra row. Letters: B rows, N drafts of all of
them, C columns, W window positions, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from starr.decode.canvas import Canvas, window_index
from starr.decode.confidence import unsaturated
from starr.decode.enforce import Step
from starr.decode.extras.base import Guest
from starr.decode.forward import ExtraRows, ForwardCall, Seen
from starr.decode.propose import ProposalRequest, propose
from starr.decode.query import Wishes
from starr.decode.request import Request
from starr.decode.view import DRAFT, DRAFT_TOKEN, draft_notes

if TYPE_CHECKING:
    from starr.model.load import Model


class Drafts(Guest):
    """Signal ``draft``: which drafts there are, and what the model predicts of each."""

    name: ClassVar[str] = "drafts"

    def __init__(self, model: Model, requests: Sequence[Request], rows: list[int]) -> None:
        super().__init__(model, requests, rows)
        flags = [(r.options.eos == "never", r.options.eos == "last") for r in requests]
        self.never, self.late = torch.tensor(flags, device=model.device).unbind(1)
        self.counts = [0] * len(requests)  # drafts of each row in the coming forward

    @classmethod
    def serves(cls, request: Request) -> bool:
        """Drafts are whole rows of tokens and masks, checked by the model's own predictions, greedy and free."""
        chance = request.options.temperature > 0 or request.options.guidance > 0
        whole_rows = not request.cache.buffered and request.blocks is None and not request.options.smoothing
        free = request.constraint is None and not request.options.verify
        return super().serves(request) and whole_rows and not chance and free

    def plan(self, wishes: Wishes) -> Wishes:
        """How many drafts each row has crosses to the host: a row without one costs one row."""
        canvas = wishes.canvas
        if DRAFT not in canvas.notes:
            self.counts = [0] * len(self.counts)
            return wishes
        note = torch.where(canvas.in_window & canvas.masked, canvas.notes[DRAFT], 0)
        self.counts = note.amax(dim=1).tolist()
        return replace(wishes, canvas=canvas.noted({DRAFT: note}))

    def prepare(self, call: ForwardCall) -> ForwardCall:
        pairs = [(row, number) for row, count in enumerate(self.counts) for number in range(1, count + 1)]
        if not pairs:
            return call
        canvas = call.canvas
        source, number = torch.tensor(pairs, device=self.rows.device).unbind(1)
        first = canvas.notes[DRAFT][source]
        filled = (first > 0) & (first <= number[:, None])
        tokens = torch.where(filled, canvas.notes[DRAFT_TOKEN][source], canvas.tokens[source])
        call = call.cost_more({row: count * call.total[row] for row, count in enumerate(self.counts)})
        return replace(call, drafts=ExtraRows(source, number, tokens, self.counts))

    def observe(self, canvas: Canvas, seen: Seen) -> Canvas:
        """Predictions of every draft as notes, by the same rules as those of the canvas."""
        drafts, states = seen.call.drafts, seen.states.drafts
        if drafts is None or states is None:
            return canvas
        where = seen.call.window[drafts.source]
        predicted = self.predict(canvas, where, drafts.source, states)
        notes = {}
        for j in range(1, max(self.counts) + 1):
            some = drafts.number == j
            for name, found in zip(draft_notes(j), predicted, strict=True):
                last = canvas.notes.get(name, found.new_zeros(canvas.tokens.shape))
                notes[name] = last.index_put((drafts.source[some][:, None], where[some]), found[some])
        return canvas.noted(notes)

    def predict(self, canvas: Canvas, where: Tensor, row: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """(N, W) proposals and sureness at the columns ``where`` (N, W) of rows (N,), from states (N, W, D)."""
        spec, shape = self.model.spec, where.shape
        banned = self.never[row][:, None] | canvas.rules.endless[row].gather(1, where)
        asked = ProposalRequest(
            spec.mask_id, torch.zeros_like(where).reshape(-1), banned=banned.reshape(-1), banned_ids=spec.eos_ids
        )
        found = propose(self.model.net.head, states.flatten(0, 1), asked, spec.shape.vocab_size)
        assert found.odds is not None
        ends = torch.isin(found.token, torch.tensor(spec.eos_ids, device=where.device)).view(shape)
        sure = unsaturated(found.confidence, found.odds).view(shape)
        return found.token.view(shape), sure.masked_fill(ends & self.late[row][:, None], 0.0)

    def apply(self, canvas: Canvas, step: Step) -> Canvas:
        """The drafts of the next forward, where the window then still is."""
        window = window_index(canvas, step.action.shape[1])[self.rows]
        notes = {}
        for name in (DRAFT, DRAFT_TOKEN):
            asked = step.decision.extras[name][self.rows]
            notes[name] = torch.zeros_like(canvas.tokens).index_put((self.rows[:, None], window), asked)
        return canvas.noted(notes)
