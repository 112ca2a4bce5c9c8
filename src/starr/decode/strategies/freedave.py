"""Several steps of the static order in one forward, without changing its text.

FreeDave, arXiv:2510.00294. Let s be the static step: commit the most confident masks, as many as the schedule says. One
prediction tells the next state, and guesses those after it: draft 1 fills what would come next by the same prediction,
draft 2 what would come after that, and so on. The next forward sees the canvas and its drafts as rows side by side.
Then the chain is checked. If s of the canvas gives draft 1, token for token, draft 1 is the next state, and its own
prediction is known already; if s of draft 1 gives draft 2, so is draft 2; up to the first that differs. All of the
longest consistent run is committed, and one step more, by the prediction of its last state.

So the text is that of ``confidence``, in fewer forwards of more positions. Two things are outside of this: the last
step that ``max_forwards`` allows commits what is left, and stop rules judge a step as a whole. A block begins without
drafts. With a cache, temperature, guidance, smoothing or a constraint, and on block-causal models, there are none: it
is ``confidence`` then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from starr.decode.ranking import rank_of, top_of
from starr.decode.strategies.confidence_topk import Confidence
from starr.decode.strategies.sweep import FIXED, TOKENS_PER_STEP, Sweep
from starr.decode.view import DRAFT, DRAFT_TOKEN, Carry, Decision, StepView, commits, draft_notes
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class FreeDave(Confidence):
    """Draft the next steps of ``confidence``, check all in one forward, commit the longest run that is confirmed."""

    name: ClassVar[str] = "freedave"
    paper: ClassVar[str] = "FreeDave, arXiv:2510.00294"
    sweep: ClassVar[Sweep] = Sweep(FIXED, "steps", TOKENS_PER_STEP)
    signals: ClassVar[frozenset[str]] = frozenset({DRAFT})
    drafts: int = option(4, "states in one forward: the canvas and drafts - 1 guesses of what follows", low=1, high=64)

    def needs(self) -> Mapping[str, float]:
        return {"drafts": self.drafts - 1}

    def begin(self, view: StepView) -> Carry:
        return {**super().begin(view), "done": torch.zeros_like(view.step)}

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        nothing = torch.zeros_like(view.tokens)
        first, guess = view.extras.get(DRAFT, nothing), view.extras.get(DRAFT_TOKEN, nothing)
        state = replace(view, step=carry["done"], confidence=view.sureness, sure=None)
        chosen = self.static(state, carry["masks"])
        alive = torch.ones_like(view.step, dtype=torch.bool)
        commit = torch.zeros_like(view.masked)
        for number in range(1, self.drafts):
            if draft_notes(number)[0] not in view.extras:
                break  # no row of the batch has so many
            filled = view.masked & (first == number)
            same = (chosen == filled) & (~filled | (state.proposal == guess))
            alive = alive & filled.any(dim=1) & same.all(dim=1)
            commit = commit | (filled & alive[:, None])
            state = self.moved(view, state, filled, alive, number)
            chosen = self.static(state, carry["masks"])
        tokens = torch.where(commit, guess, state.proposal)
        commit = commit | chosen
        left = replace(state, masked=state.masked & ~chosen, step=state.step + 1)
        extras = {DRAFT: self.ahead(left, carry["masks"]), DRAFT_TOKEN: state.proposal}
        after = {"masks": carry["masks"], "done": left.step}
        return Decision(commits(commit), order=state.confidence, tokens=tokens, extras=extras), after

    def static(self, state: StepView, masks: Tensor) -> Tensor:
        """(B, W) bool: what ``confidence`` commits in this state."""
        return top_of(state.confidence, state.masked, self.count(state, masks).clamp_min(1))

    def moved(self, view: StepView, state: StepView, filled: Tensor, alive: Tensor, number: int) -> StepView:
        """The state of draft ``number`` in rows that are ``alive`` (B,), the old one in the others."""
        proposal, sureness = (view.extras[name] for name in draft_notes(number))
        rows = alive[:, None]
        return replace(
            state,
            masked=state.masked & ~(filled & rows),
            proposal=torch.where(rows, proposal, state.proposal),
            confidence=torch.where(rows, sureness, state.confidence),
            step=state.step + alive,
        )

    def ahead(self, state: StepView, masks: Tensor) -> Tensor:
        """(B, W) int64: the draft in which each mask is filled for the first time, 0 for those that no draft fills."""
        rank, before = rank_of(state.confidence, state.masked), torch.zeros_like(state.step)
        first = torch.zeros_like(state.tokens)
        for number in range(1, self.drafts):
            left = replace(state, masked=state.masked & (rank >= before[:, None]), step=state.step + number - 1)
            until = before + self.count(left, masks).clamp_min(1)
            here = state.masked & (rank >= before[:, None]) & (rank < until[:, None])
            first, before = torch.where(here, number, first), until
        return first
