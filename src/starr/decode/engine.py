"""The loop, in the order of its picture (docs/design.md): one forward and one decision per step, for all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from starr.decode.advance import advance, move_end, stop_after
from starr.decode.apply import apply
from starr.decode.batch import Batch
from starr.decode.decide import decide
from starr.decode.enforce import Bounds, enforce
from starr.decode.forward import forward
from starr.decode.propose import postpone_eos, proposal_request, propose
from starr.decode.request import Request
from starr.decode.rescue import expel, keep
from starr.decode.result import Event
from starr.decode.stops.base import consult
from starr.decode.view import Action, check_numbers, kept_tensors, observe, remember, window_logits
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
            failed = expel(self, kept)
            return self.step(), failed

    @torch.inference_mode()
    def step(self) -> list[Event]:
        """One forward and one decision for every row; events of the rows that are streamed or done."""
        batch, net, spec = self.batch, self.model.net, self.model.spec
        batch.admit()
        if not batch.rows:
            return []
        # query: planned at the end of the step before, or when the rows joined
        MACHINE.use(self.model.threads)
        call, guests, settings = batch.call(), batch.guests, batch.settings
        canvas, window, observed = call.canvas, call.window, call.observed
        # forward
        states = forward(net, spec, call, guests)
        # propose
        request = proposal_request(settings, canvas, observed, spec, states.unguided)
        request = guests.propose(request, canvas, observed)
        found = propose(net.head, states.observed, request, spec.shape.vocab_size)
        found = postpone_eos(found, settings, observed, batch.eos_ids, spec.shape.vocab_size)
        # view
        canvas = guests.remember(remember(canvas, call.plan, observed, found), observed, found)
        self.trusted = self.trusted or check_numbers(canvas.confidence, call.plan.observed)
        canvas = guests.observe(canvas, window, states.guests)
        seen = observe(canvas, window, settings.signals, window_logits(canvas, window, observed, found))
        view, verdict = consult(settings.rules, seen, canvas, batch.eos_ids, call.plan.query)
        # decide
        opened = any(call.plan.figures.opened)
        decision, batch.groups = decide(batch.groups, view, canvas.total == 0, opened)
        # enforce
        free, last = guests.free(decision, canvas.literal), canvas.total >= canvas.limit - 1
        spent = canvas.revoked.gather(1, window) >= canvas.chances[:, None]
        action = enforce(decision, view, Bounds(free, last, canvas.strict, spent))
        action = action if verdict is None else verdict.over(action)
        written = view.proposal if decision.tokens is None else decision.tokens
        action, written = guests.amend(action, written, seen, canvas)
        # apply
        batch.book(kept_tensors(seen, decision, action, call, batch.candidates) if batch.traced else None)
        canvas = apply(canvas, window, action, written, spec.mask_id)
        canvas = stop_after(guests.apply(move_end(canvas, decision.end), decision), verdict)
        # advance
        canvas, kept_open = guests.keeps_open(canvas, (action != Action.KEEP).any(dim=1))
        canvas, done = advance(canvas, batch.eos_ids, kept_open)
        # plan the next query
        return batch.report(batch.plan_next(canvas, done if verdict is None else done | verdict.drop))
