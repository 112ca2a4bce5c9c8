"""The safety rules, once, for every strategy.

Always: frozen positions never move; only masks are committed, only held tokens revoked or revised. Progress, in safe
mode: while masks remain a step commits at least one (the most confident, ties to the lower position) and revokes fewer
than it commits (the largest doubt first: what the strategy says, else threshold - confidence, else the lowest
confidence; ties to the lower position). So every step leaves fewer masks, and a run ends within ``length`` steps. The
mask token is never proposed (see ``propose``), hence never committed. A step that grows the canvas is free of the
progress rules: the context bounds how often that happens. The last allowed step commits every
mask and revokes nothing, in either mode.
"""

from __future__ import annotations

import torch
from torch import Tensor

from starr.strategy.base import Action, Decision, StepView, best_of, top_of


def enforce(decision: Decision, view: StepView, *, literal: Tensor, last: Tensor) -> Tensor:
    """Actions (B, W) int8 that may be carried out; ``literal`` and ``last`` are (B,) bool."""
    allowed = permit(decision.action, view)
    progress = limit_revocations(ensure_commit(allowed, view), decision, view)
    free = literal if decision.grow is None else literal | (decision.grow > 0)
    action = torch.where(free[:, None], allowed, progress)
    action = action.masked_fill(last[:, None] & (action == Action.REVOKE), int(Action.KEEP))
    return torch.where(last[:, None] & view.masked, int(Action.COMMIT), action).to(torch.int8)


def permit(action: Tensor, view: StepView) -> Tensor:
    """Drop what the state of a position does not allow."""
    commit = (action == Action.COMMIT) & view.masked
    on_held = (action >= Action.REVOKE) & view.held
    return torch.where(commit | on_held, action, int(Action.KEEP))


def ensure_commit(action: Tensor, view: StepView) -> Tensor:
    """At least one commit in every row that still has masks."""
    stuck = ~(action == Action.COMMIT).any(dim=1, keepdim=True)
    return torch.where(stuck & best_of(view.confidence, view.masked), int(Action.COMMIT), action)


def limit_revocations(action: Tensor, decision: Decision, view: StepView) -> Tensor:
    """Fewer revocations than commits; the most deserved ones stay."""
    revoke = action == Action.REVOKE
    allowed = (action == Action.COMMIT).sum(dim=1) - 1
    doubt = -view.confidence
    for said in (None if decision.threshold is None else decision.threshold - view.confidence, decision.doubt):
        if said is not None:  # NaN marks rows whose strategy did not say
            doubt = torch.where(said.isnan(), doubt, said)
    kept = top_of(doubt, revoke, allowed)
    return torch.where(revoke & ~kept, int(Action.KEEP), action)
