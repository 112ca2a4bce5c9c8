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
sooner. A window that is kept open when it is full takes a bounded number of steps more, which come on top.
A canvas that grows adds what is inserted to L, within the model's context, and its growing steps. Guests that amend
actions (constraints) keep a commit and add no revocation, and seals do, too. WINO's shadow is read-only.
``max_forwards`` can only shorten a run. Verified rows have more revocations and steps, see ``extras.verify``.

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

from starr.decode.canvas import Canvas
from starr.decode.forward import ForwardCall
from starr.decode.ranking import best_of, top_of
from starr.decode.stops.base import Verdict
from starr.decode.view import COMMIT, KEEP, REVOKE, Decision, StepView

DOUBTED, BARRED, TAMED = "doubted", "barred", "tamed"
"""Notes of the guest that verifies: (B, C) bool as in ``Bounds``, and (B,) bool: progress rules hold in any case."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which rules hold for which rows and positions."""

    free: Tensor  # (B,) bool: no progress rules
    last: Tensor  # (B,) bool: the row may take no step after this one
    strict: Tensor  # (B,) bool: fewer revocations than commits
    spent: Tensor  # (B, W) bool: revoked as often as a position may be
    doubted: Tensor | None = None  # (B, W) bool: held tokens that are revoked whatever was decided
    barred: Tensor | None = None  # (B, W) bool: masks that are committed only if nothing else is


@dataclass(frozen=True, slots=True)
class Step:
    """One step between decision and canvas."""

    canvas: Canvas  # before the step
    window: Tensor  # (B, W) int64: columns
    view: StepView  # of the window
    scoped: StepView  # as the strategies have it: without what stop rules hide
    decision: Decision
    verdict: Verdict | None
    last: Tensor  # (B,) bool: the row may take no step after this one
    action: Tensor  # (B, W) int8: what is carried out
    written: Tensor  # (B, W) int64: tokens of COMMIT and REVISE


def settle_step(
    call: ForwardCall, canvas: Canvas, view: StepView, scoped: StepView, decision: Decision, verdict: Verdict | None
) -> Step:
    """What is carried out by the safety rules, the stop rules' verdict and the order of sealed blocks.

    ``scoped`` is the view that the strategies had.
    """
    window, blocks = call.window, call.settings.blocks
    last = canvas.total >= canvas.limit - 1
    spent = canvas.done.revoked.gather(1, window) >= canvas.rules.max_revocations[:, None]
    doubted, barred, tamed = (canvas.notes.get(name) for name in (DOUBTED, BARRED, TAMED))
    bounds = Bounds(
        free=canvas.rules.literal if tamed is None else canvas.rules.literal & ~tamed,
        last=last,
        strict=canvas.rules.strict,
        spent=spent,
        doubted=None if doubted is None else doubted.gather(1, window),
        barred=None if barred is None else barred.gather(1, window),
    )
    action = enforce(decision, scoped, bounds)
    action = action if verdict is None else verdict.over(action)
    action = action if blocks is None else blocks.commit_first(action, canvas)
    written = scoped.proposal if decision.tokens is None else decision.tokens
    return Step(canvas, window, view, scoped, decision, verdict, last, action, written)


def enforce(decision: Decision, view: StepView, bounds: Bounds) -> Tensor:
    """Actions (B, W) int8 that may be carried out."""
    free, last, strict = bounds.free[:, None], bounds.last[:, None], bounds.strict[:, None]
    allowed = permit(decision.action, view)
    if bounds.barred is not None:
        allowed = allowed.masked_fill((allowed == COMMIT) & bounds.barred, KEEP)
    progress = ensure_commit(allowed, decision, view)
    rationed = progress.masked_fill((progress == REVOKE) & bounds.spent, KEEP)
    progress = torch.where(strict, limit_revocations(progress, decision, view), rationed)
    action = torch.where(free, allowed, progress)
    if bounds.doubted is not None:
        action = action.masked_fill(bounds.doubted & view.held, REVOKE)
    action = action.masked_fill(last & (action == REVOKE), KEEP)
    return torch.where(last & view.masked, COMMIT, action).to(torch.int8)


def permit(action: Tensor, view: StepView) -> Tensor:
    """Drop what the state of a position does not allow."""
    commit = (action == COMMIT) & view.masked
    on_held = (action >= REVOKE) & view.held
    return torch.where(commit | on_held, action, KEEP)


def ensure_commit(action: Tensor, decision: Decision, view: StepView) -> Tensor:
    """At least one commit in every row that still has masks."""
    order = view.sureness
    if decision.order is not None:  # NaN marks rows whose strategy did not say
        order = torch.where(decision.order.isnan(), order.to(decision.order.dtype), decision.order)
    stuck = ~(action == COMMIT).any(dim=1, keepdim=True)
    return torch.where(stuck & best_of(order, view.masked), COMMIT, action)


def limit_revocations(action: Tensor, decision: Decision, view: StepView) -> Tensor:
    """Fewer revocations than commits; the most deserved ones stay."""
    revoke = action == REVOKE
    allowed = (action == COMMIT).sum(dim=1) - 1
    doubt = -view.confidence
    for said in (None if decision.threshold is None else decision.threshold - view.confidence, decision.doubt):
        if said is not None:
            doubt = torch.where(said.isnan(), doubt, said)
    kept = top_of(doubt, revoke, allowed)
    return torch.where(revoke & ~kept, KEEP, action)
