"""A fitted rule: one JSON file with features, normalisation and weights, and what it was fitted on.

The rule is a network with one hidden layer and two outputs, sigmoid(w2 . tanh(W1 x + b1) + b2). P is the probability
that a proposal stands in the final text; H, that one which does not stand is harmful, that is, would not fit behind
that text. The risk of a commit is (1 - P) (1 + (harm - 1) H): a harmful one counts as ``harm`` others. Several networks
may be averaged. A token's habit says how much more often than its confidence it stood: the wording of a sentence often
does, a digit does not. Tokens that were never seen have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from starr.decode.strategies.base import KnownModel
from starr.decode.strategies.calibrated.features import NAMES, VERSION, with_habits
from starr.decode.strategies.fitted import find_fitted
from starr.errors import InputError

FORMAT = 3
NUMBERS = ("mean", "scale", "w1", "b1", "w2", "b2")
BARS = ("careful", "budget", "harm")
LARGEST_VOCABULARY = 2**20
HINT = "Fit one: starr calibrate TASK -o rule.json, then calibrated:rule=rule.json."
GRID = 2.0**12  # P and H are rounded, so that a row gets the same in any batch


@dataclass(frozen=True, slots=True, eq=False)
class FittedRule:
    """Weights of M networks over F features with H hidden units, and where they come from."""

    mean: Tensor  # (F,) float32
    scale: Tensor  # (F,) float32
    w1: Tensor  # (M, F, H)
    b1: Tensor  # (M, 1, H)
    w2: Tensor  # (M, H, 2)
    b2: Tensor  # (M, 1, 2)
    habits: Tensor  # (V,) float32
    careful: float = 0.95  # confidences from here on are committed by the careful run itself
    budget: float = 0.3  # risk of a step's commits, by default
    harm: float = 10.0  # what a harmful commit counts
    fitted_on: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)

    def chances(self, features: Tensor, proposals: Tensor) -> tuple[Tensor, Tensor]:
        """P and H (B, W) of what the state shows (B, W, len(SEEN)) and the proposals nearby (B, W, len(TOKEN))."""
        features = with_habits(features, proposals, self.habits)
        x = ((features - self.mean) / self.scale).flatten(0, 1)
        hidden = torch.tanh(torch.matmul(x, self.w1) + self.b1)
        logits = torch.matmul(hidden, self.w2) + self.b2
        mean = logits.sigmoid().mean(dim=0).view(*features.shape[:2], 2)
        stands, harms = ((mean * GRID).round() / GRID).unbind(dim=2)
        return stands, harms

    def risk(self, stands: Tensor, harms: Tensor) -> Tensor:
        """(B, W): what committing counts, of P and H."""
        return (1.0 - stands) * (1.0 + (self.harm - 1.0) * harms)

    def to_dict(self) -> dict[str, Any]:
        """The file's content."""
        numbers = {name: getattr(self, name).tolist() for name in NUMBERS}
        known = self.habits.nonzero()[:, 0].tolist()
        habits = {"vocabulary": len(self.habits), "habits": {str(token): self.habits[token].item() for token in known}}
        head = {"format": FORMAT, "features": list(NAMES), "features_version": VERSION}
        head |= {name: getattr(self, name) for name in BARS}
        return head | {"fitted_on": self.fitted_on, "scores": self.scores} | habits | numbers


def rule_from(body: dict[str, Any], source: str) -> FittedRule:
    """A rule from a file's content; anything else is one clear line."""
    try:
        if body["format"] != FORMAT or body["features_version"] != VERSION or tuple(body["features"]) != NAMES:
            raise InputError(
                f"Rule {source} was fitted with other features (version {body['features_version']}, here {VERSION}).",
                hint="Fit it again with `starr calibrate`.",
                param="rule",
            )
        numbers = {name: torch.tensor(body[name]) for name in NUMBERS}
        numbers["habits"] = habits_from(body["habits"], body["vocabulary"])
        bars = {name: float(body[name]) for name in BARS}
        rule = FittedRule(**numbers, **bars, fitted_on=body["fitted_on"], scores=body["scores"])  # type: ignore[arg-type]
        sizes = rule.w1.shape[1], rule.w2.shape[2]
        if sizes != (len(NAMES), 2) or not all(t.isfinite().all() for t in numbers.values()):
            raise ValueError("numbers")
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError):
        raise InputError(
            f"{source} is not a rule: something is missing.", hint="`starr calibrate` writes one."
        ) from None
    return rule


def habits_from(known: dict[str, float], vocabulary: int) -> Tensor:
    """(V,) float32 of the habits that a file names."""
    if not 0 < vocabulary <= LARGEST_VOCABULARY:
        raise ValueError("vocabulary")
    habits = torch.zeros(vocabulary)
    habits[torch.tensor([int(token) for token in known], dtype=torch.long)] = torch.tensor(list(known.values()))
    return habits


def find_rule(where: str, model: KnownModel) -> FittedRule:
    """The rule of a file, or with ``auto`` the one that ships for the model."""
    return find_fitted(where, model, "rule", __package__, rule_from, HINT)
