"""Commit early and overwrite later: token-to-token editing as in LLaDA2.1.

Commit every masked c > tau, and always the most confident one (ties to the lower position). A held token is revised
when the most likely token at its position is another one with a probability > edit. After the last mask of a window
is gone, up to 16 more steps revise until one changes nothing. A ``penalty`` is subtracted, before anything is proposed,
from the logit of the token that stands immediately to the left in the same block (SGLang's guard against repeated
tokens).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from starr.decode.ranking import with_best
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.sweep import REVOKE, Sweep
from starr.decode.view import Carry, Decision, StepView, actions
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class Edit(Strategy):
    """Commit where confidence > tau, and overwrite held tokens where another token's probability > edit."""

    name: ClassVar[str] = "edit"
    paper: ClassVar[str] = "LLaDA2.1 (token-to-token editing)"
    sweep: ClassVar[Sweep] = Sweep(REVOKE)
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "quality": {"tau": 0.7, "edit": 0.5},
        "speed": {"tau": 0.5, "edit": 0.0},
    }
    tau: float = option(0.95, "commit where confidence is above this", low=0.0, high=2.0)
    edit: float = option(0.9, "revise where the probability of another token is above this", low=0.0, high=2.0)
    penalty: float = option(0.0, "subtracted from the logit of the token to the left", low=0.0, high=100.0)

    def ends_within(self, masks: int, length: int, windows: int) -> int:
        """Every step with masks commits one, and nothing is revoked."""
        return masks

    def needs(self) -> Mapping[str, float]:
        return {"repetition": self.penalty, "extra_steps": 16}

    def revokes(self) -> bool:
        return True

    def decide(self, view: StepView, carry: Carry) -> tuple[Decision, Carry]:
        chosen = with_best(view.masked & (view.confidence > self.tau), view.sureness, view.masked)
        revised = view.held & (view.proposal != view.tokens) & (view.best > self.edit)
        threshold = torch.full_like(view.confidence, self.tau).masked_fill(view.held, self.edit)
        return Decision(actions(chosen, revise=revised), threshold), carry
