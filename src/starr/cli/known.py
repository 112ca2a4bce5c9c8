"""The remarks, printed once, for somebody who asks a small model for more than it knows, or asks in the wrong way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starr.cli.report import note
from starr.errors import counted

if TYPE_CHECKING:
    from starr.model.known import Prompt
    from starr.model.load import Model


def remark(model: Model, prompt: Prompt, quiet: bool) -> None:
    """One line on standard error where a prompt is unlike anything that the model was trained on."""
    said = model.known.remark(model.name, prompt) if model.known is not None else ""
    if said:
        note(f"({said})", quiet)


def remark_all(model: Model, prompts: Sequence[Prompt], quiet: bool) -> None:
    """The same for many prompts, in one line that counts them."""
    known = model.known
    strange = 0 if known is None else sum(bool(known.doubt(prompt)) for prompt in prompts)
    if known is not None and strange:
        verb, whose = ("is", "its answer") if strange == 1 else ("are", "their answers")
        said = f"{counted(strange, 'prompt')} of {len(prompts)} {verb} unlike those, so {whose} may be nonsense"
        note(f"({model.name} knows only {known.about}: {said})", quiet)


def remark_turns(model: Model, quiet: bool) -> bool:
    """Whether the model knows single questions only; says so."""
    single = model.known is not None and model.known.turns == 1
    if single:
        note(f"({model.name} knows single questions only: each is answered without the ones before it)", quiet)
    return single


def remark_holes(prompts: Sequence[Prompt], infill: bool, quiet: bool) -> None:
    """One line where prompts have holes that nothing fills."""
    from starr.decode.prompts.infill import has_holes

    if not infill and any(has_holes(prompt) for prompt in prompts if isinstance(prompt, str)):
        note("(the holes of the prompt are read as text: --infill fills [MASK:n] with n tokens)", quiet)
