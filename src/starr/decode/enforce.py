"""The safety rules, once, for every strategy.

Always: frozen positions never move; only masks are committed, only held tokens revoked or revised. The mask token is
never proposed (see ``propose``), hence never committed. The last allowed step commits every mask and revokes nothing.

Progress. While masks remain, a step commits at least one: if the strategy chose none, the first by its own order
(``Decision.order``), else by sureness; ties go to the lower position. Revocations are bounded in one of two ways:

- *strict*: a step revokes fewer than it commits (the largest doubt first: what the strategy says, else threshold -
  confidence, else the lowest confidence; ties to the lower position). So every step leaves fewer masks, and a run ends
  within L steps, L being the masks at its start.
- *bounded*: a position that was revoked r times already (``max_revocations``) is not revoked again. Proof that a run
  ends: let R be all revocations. A commit needs a mask, and masks come from the start or from a revocation, so commits
  <= L + R; R <= r L, since each position is revoked at most r times; and every step commits something. Hence steps <=
  commits <= L (1 + r).

Nothing else loosens this. Blocks split L among them. Revisions make no mask. End-of-texts and stop rules only end a run
sooner. A window that is kept open when it is full takes at most ``Strategy.extra_steps`` steps more, which come on top.
A canvas that grows adds what is inserted to L, within the model's context, and its growing steps. Guests that amend
actions (constraints, seals) keep a commit and add no revocation; WINO's shadow only tells. ``max_forwards`` can but
shorten a run.

Strategies that end by themselves (``Strategy.ends_within``) go without these rules, up to the number of steps that they
give, unless the request says strict. *safe*, the default, is that, and strict for all others: so every paper's rule is
its own where it is known to end. Where it is not (starr), strict and bounded gave texts as good, strict with fewer
forwards, and literal worse ones (docs/results/enforce.md). *literal* is no progress rule at all. Rows that are ``free``
are those, and rows whose step a guest excuses and bounds itself. The row's limit of steps ends any run.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from starr.decode.ranking import best_of, top_of
from starr.decode.view import Action, Decision, StepView


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which rules hold for which rows and positions."""

    free: Tensor  # (B,) bool: no progress rules
    last: Tensor  # (B,) bool: the row may take no step after this one
    strict: Tensor  # (B,) bool: fewer revocations than commits
    spent: Tensor  # (B, W) bool: revoked as often as a position may be


def enforce(decision: Decision, view: StepView, bounds: Bounds) -> Tensor:
    """Actions (B, W) int8 that may be carried out."""
    free, last, strict = bounds.free[:, None], bounds.last[:, None], bounds.strict[:, None]
    allowed = permit(decision.action, view)
    progress = ensure_commit(allowed, decision, view)
    rationed = progress.masked_fill((progress == Action.REVOKE) & bounds.spent, int(Action.KEEP))
    progress = torch.where(strict, limit_revocations(progress, decision, view), rationed)
    action = torch.where(free, allowed, progress)
    action = action.masked_fill(last & (action == Action.REVOKE), int(Action.KEEP))
    return torch.where(last & view.masked, int(Action.COMMIT), action).to(torch.int8)


def permit(action: Tensor, view: StepView) -> Tensor:
    """Drop what the state of a position does not allow."""
    commit = (action == Action.COMMIT) & view.masked
    on_held = (action >= Action.REVOKE) & view.held
    return torch.where(commit | on_held, action, int(Action.KEEP))


def ensure_commit(action: Tensor, decision: Decision, view: StepView) -> Tensor:
    """At least one commit in every row that still has masks."""
    order = view.sureness
    if decision.order is not None:  # NaN marks rows whose strategy did not say
        order = torch.where(decision.order.isnan(), order.to(decision.order.dtype), decision.order)
    stuck = ~(action == Action.COMMIT).any(dim=1, keepdim=True)
    return torch.where(stuck & best_of(order, view.masked), int(Action.COMMIT), action)


def limit_revocations(action: Tensor, decision: Decision, view: StepView) -> Tensor:
    """Fewer revocations than commits; the most deserved ones stay."""
    revoke = action == Action.REVOKE
    allowed = (action == Action.COMMIT).sum(dim=1) - 1
    doubt = -view.confidence
    for said in (None if decision.threshold is None else decision.threshold - view.confidence, decision.doubt):
        if said is not None:
            doubt = torch.where(said.isnan(), doubt, said)
    kept = top_of(doubt, revoke, allowed)
    return torch.where(revoke & ~kept, int(Action.KEEP), action)
