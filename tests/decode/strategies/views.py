"""One row's view from plain lists, for strategies by hand."""

from __future__ import annotations

import torch

from starr.decode.view import StepView


def one_row(
    confidence: list[float], held: tuple[int, ...] = (), step: int = 0, windows: int = 1, **signals
) -> StepView:
    """Positions are masked but for the ``held`` ones; signals are lists."""
    score = torch.tensor([confidence])
    width = torch.tensor([len(confidence)])
    masked = torch.tensor([[i not in held for i in range(len(confidence))]])
    number = torch.arange(len(confidence))[None] + 10
    given = {name: torch.tensor([values]) for name, values in signals.items()}
    return StepView(
        tokens=number.masked_fill(masked, 0),
        masked=masked,
        frozen=torch.zeros_like(masked),
        proposal=number,
        confidence=score,
        best=score,
        step=torch.tensor([step]),
        width=width,
        windows=torch.tensor([windows]),
        block=width,
        **given,
    )


def chosen(strategy, view: StepView, carry=None) -> list[int]:
    """The positions that a decision commits."""
    decision, _ = strategy.decide(view, strategy.begin(view) if carry is None else carry)
    return [i for i, action in enumerate(decision.action[0].tolist()) if action == 1]
