"""Prefer early positions and informative tokens over trivially likely ones.

PC-Sampler, arXiv:2508.13021: rank masked positions by exp(-decay i) min(clip, -c ln(f + 1e-9)), i the position in the
window, f the frequency of the proposed token in a corpus; commit as many of the highest as the schedule gives,
ties to the lower position. The logarithm of the score is compared, in float64, so that far positions do not
underflow.

``frequencies`` names a JSON file {token id: count} or a text file that is counted with the model's tokenizer; without
it all tokens of the vocabulary are equally frequent. A token that the corpus does not have counts as seen once. A
strategy that has not met a model weighs every token 1 nat.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from starr.decode.strategies.base import KnownModel
from starr.decode.strategies.schedule import Scheduled
from starr.decode.strategies.sweep import FIXED, TOKENS_PER_STEP, Sweep
from starr.decode.view import StepView
from starr.errors import InputError
from starr.named import option
from starr.plugins import register


@register
@dataclass(frozen=True, kw_only=True)
class PCSampler(Scheduled):
    """Commit the best by confidence times information of the token, early positions first."""

    name: ClassVar[str] = "pc"
    paper: ClassVar[str] = "PC-Sampler, arXiv:2508.13021"
    sweep: ClassVar[Sweep] = Sweep(FIXED, "steps", TOKENS_PER_STEP)
    files: ClassVar[frozenset[str]] = frozenset({"frequencies"})
    decay: float = option(0.25, "how fast the score falls with the position in the window", low=0.0)
    clip: float = option(10.0, "upper bound on confidence times information", low=0.0)
    frequencies: str | None = option(None, "JSON file {token id: count}, or a text to count; none is uniform")
    information: Tensor | None = field(default=None, repr=False, compare=False)  # (V,) float64: -ln(f + 1e-9)

    def bind(self, model: KnownModel) -> Self:
        """A copy that knows how informative each token of the model's vocabulary is."""
        size = model.spec.shape.vocab_size
        path = self.frequencies
        counts = dict.fromkeys(range(size), 1) if path is None else read_counts(path, model.tokenizer)
        return replace(super().bind(model), information=information_of(counts, size))

    def score(self, view: StepView) -> Tensor:
        confidence = view.confidence.double()
        if self.information is not None:
            confidence = confidence * self.information.to(view.proposal.device)[view.proposal]
        position = torch.arange(view.masked.shape[1], device=view.masked.device)
        return confidence.clamp_max(self.clip).clamp_min(1e-300).log() - self.decay * position


def information_of(counts: Mapping[int, int], size: int) -> Tensor:
    """-ln(f + 1e-9) for every token, (size,) float64, at least 0; f is at least 1 / total, as in the released code."""
    if any(not 0 <= token < size for token in counts):
        wrong = next(token for token in counts if not 0 <= token < size)
        raise InputError(
            f"pc: frequencies must name tokens of the vocabulary, 0 to {size - 1}, got {wrong}.", param="frequencies"
        )
    table = torch.zeros(size, dtype=torch.float64)
    table[list(counts.keys())] = torch.tensor(list(counts.values()), dtype=torch.float64)
    return (table.clamp_min(1.0) / table.sum() + 1e-9).clamp_max(1.0).log().neg()


def read_counts(path: str, tokenizer: Any) -> dict[int, int]:
    """Counts of tokens from a ``.json`` file, or from any other file as UTF-8 text."""
    rule = f"pc: frequencies must be a readable text file or JSON {{token id: count}}, got {path}"
    try:
        text = Path(path).read_text(encoding="utf8")
        counts = (
            {int(token): int(count) for token, count in json.loads(text).items()}
            if path.endswith(".json")
            else dict(Counter(tokenizer.encode(text)))
        )
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{rule} ({type(error).__name__}).", param="frequencies") from None
    if sum(counts.values()) <= 0 or min(counts.values()) < 0:
        raise InputError(f"{rule} (counts must not be negative and not all zero).", param="frequencies")
    return counts
