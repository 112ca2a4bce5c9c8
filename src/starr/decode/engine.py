"""The loop, in the order of its picture (docs/design.md): one forward and one decision per step, for all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from starr.decode.advance import advance, stop_after
from starr.decode.apply import apply
from starr.decode.batch import Batch
from starr.decode.decide import decide
from starr.decode.enforce import settle_step
from starr.decode.extras.base import ask
from starr.decode.forward import ForwardCall, Seen, States, forward
from starr.decode.propose import Proposals, postpone_eos, proposal_request, propose
from starr.decode.request import Request
from starr.decode.rescue import drop_failing_rows, keep
from starr.decode.result import Event
from starr.decode.stops.base import consult
from starr.decode.view import build_view, check_numbers, keep_tensors, remember
from starr.model.threads import MACHINE

if TYPE_CHECKING:
    from starr.model.load import Model


class Engine:
    """Decodes many requests together; a row gives the same tokens alone and in any batch."""

    def __init__(self, model: Model, *, max_rows: int = 8) -> None:
        self.model = model
        self.batch = Batch(model, max_rows)
        self.trusted = False  # the first forward gave numbers

    @property
    def busy(self) -> bool:
        """Whether a row waits or runs."""
        return bool(self.batch.rows or self.batch.waiting)

    def add(self, request: Request) -> int:
        """Queue a checked request; it joins before the next step that has room."""
        return self.batch.enqueue(request)

    @torch.inference_mode()
    def cancel(self, id: int) -> None:
        """Forget a request, waiting or running."""
        self.batch.drop(id)

    def step_apart(self) -> tuple[list[Event], dict[int, Exception]]:
        """A step in which a row that fails does not take the others down with it: events, and errors by id."""
        kept = keep(self.batch)
        try:
            return self.step(), {}
        except Exception:
            failed = drop_failing_rows(self, kept)
            return self.step(), failed

    def leave_out(self, call: ForwardCall, states: States) -> Proposals | None:
        """What the model predicts at the columns of extra queries, by the same rules as elsewhere."""
        if call.extra is None or states.extra is None:
            return None
        here, spec = replace(call, observed=call.extra.columns), self.model.spec
        request = ask(self.batch.guests, "propose", proposal_request(here, spec, None), here)
        request = replace(request, signals=frozenset(), temperature=None, readers={})
        return propose(self.model.net.head, states.extra.flatten(0, 1), request, spec.shape.vocab_size)

    @torch.inference_mode()
    def step(self) -> list[Event]:
        """One forward and one decision for every row; events of the rows that are streamed or done."""
        batch, net, spec = self.batch, self.model.net, self.model.spec
        batch.admit()
        if not batch.rows:
            return []
        MACHINE.use(self.model.threads)
        guests = batch.guests
        # query: planned at the end of the step before, or when the rows joined
        call = batch.call()
        # forward
        states = forward(net, spec, call)
        # propose
        request = ask(guests, "propose", proposal_request(call, spec, states.unguided), call)
        found = propose(net.head, states.observed, request, spec.shape.vocab_size)
        found = postpone_eos(found, call, batch.eos_ids, spec.shape.vocab_size)
        # view
        seen = Seen(call, states, found, self.leave_out(call, states))
        canvas = ask(guests, "observe", remember(call, found), seen)
        self.trusted = self.trusted or check_numbers(canvas.last.confidence, call.plan.observed)
        view = build_view(call, canvas, found)
        scoped, verdict = consult(call.settings.rules, view, canvas, batch.eos_ids, call.plan.query)
        # decide
        decision, batch.groups = decide(batch.groups, scoped, canvas.total == 0, any(call.plan.figures.opened))
        # enforce
        step = ask(guests, "amend", settle_step(call, canvas, view, scoped, decision, verdict))
        # apply
        batch.book(call, keep_tensors(step, call, batch.candidates) if batch.traced else None)
        canvas = ask(guests, "apply", apply(step, call.settings.blocks, spec.mask_id), step)
        # advance
        canvas, done = advance(stop_after(canvas, verdict), batch.eos_ids)
        # plan the next query
        return batch.report(batch.plan_next(canvas, done if verdict is None else done | verdict.drop))
