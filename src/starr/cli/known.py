"""The remark, printed once, for somebody who asks a small model for more than it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starr.cli.report import note

if TYPE_CHECKING:
    from starr.model.known import Prompt
    from starr.model.load import Model

WORDS = 3  # that are named


def remark(model: Model, prompt: Prompt, quiet: bool) -> None:
    """One line on standard error where a prompt is unlike anything that the model was trained on."""
    known = model.known
    if known is not None and known.strangeness(prompt) > known.limit:
        words = [f'"{word}"' for word in known.unseen(prompt)[:WORDS]]
        why = f"it has never seen {' or '.join(words)}" if words else "this prompt is unlike those"
        note(f"({model.name} knows only {known.about}: {why}, so the answer may be nonsense)", quiet)


def remark_turns(model: Model, quiet: bool) -> bool:
    """Whether the model knows single questions only; says so."""
    single = model.known is not None and model.known.turns == 1
    if single:
        note(f"({model.name} knows single questions only: each is answered without the ones before it)", quiet)
    return single
