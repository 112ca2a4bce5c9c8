"""The remarks, printed once, for somebody who asks a small model for more than it knows, or asks in the wrong way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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


def remark_thinking(text: str, ice: Any, quiet: bool) -> None:
    """One line where a template of ``ice`` has a section without a word, because the answer was sure before."""
    marks = [] if ice is None else [ice.mark.replace("{}", str(number)) for number in range(1, ice.steps + 1)]
    empty = sum(mark.strip() in map(str.strip, text.splitlines()) for mark in marks)
    if empty:
        what = "1 thinking section is" if empty == 1 else f"{empty} thinking sections are"
        note(f"(the answer was sure before the thinking was done, so {what} empty: --ice-fill writes all)", quiet)
