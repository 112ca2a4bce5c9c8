"""Questions on a row: runs of masks, and the choices that may fill them.

Behind a prompt the run is one longer than the longest choice, and shorter choices end in end-of-texts. In a text with
holes every hole is as long as its choice; where the choices of a hole differ in length, each length is a row of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starr.decode.prompts.infill import BARE_HOLE
from starr.errors import InputError, counted

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class Question:
    """A run of positions of one row, and fillings of it that are scored there; parts of one choice add up."""

    row: int
    start: int
    fillings: dict[str, list[int]]
    order: tuple[str, ...]  # every choice of the question, as given

    @property
    def places(self) -> range:
        """The columns of its positions."""
        return range(self.start, self.start + len(next(iter(self.fillings.values()))))


def asks_within(text: str) -> bool:
    """Whether a text has ``[MASK]`` holes, so that its questions stand within it and not behind."""
    return BARE_HOLE.search(text) is not None


def questions_behind(
    model: Model, prompt: Sequence[int], choices: Sequence[str]
) -> tuple[list[list[int]], list[list[Question]]]:
    """One row: the prompt and masks for the longest choice and its end."""
    encoded = {choice: encode(model, choice) for choice in choices}
    room = max(map(len, encoded.values())) + 1
    end = model.spec.eos_ids[0]
    fillings = {choice: tokens + [end] * (room - len(tokens)) for choice, tokens in encoded.items()}
    return [[*prompt, *[model.spec.mask_id] * room]], [[Question(0, len(prompt), fillings, tuple(choices))]]


def questions_within(
    model: Model, text: str, choices: Sequence[Sequence[str]]
) -> tuple[list[list[int]], list[list[Question]]]:
    """A row with every hole at its longest, and one more for each other length of a hole."""
    parts = BARE_HOLE.split(text)
    if len(parts) - 1 != len(choices):
        raise InputError(
            f"The text has {counted(len(parts) - 1, 'hole')}, and there are choices for {len(choices)}.",
            hint="Write [MASK] for each question.",
            param="choices",
        )
    texts = [encode(model, part, empty=True) for part in parts]
    texts = [model.spec.before + texts[0], *texts[1:-1], texts[-1] + model.spec.behind]
    encoded = [{choice: encode(model, choice) for choice in each} for each in choices]
    longest = [max(map(len, each.values())) for each in encoded]
    rows: list[list[int]] = []
    asked: list[list[Question]] = [[] for _ in choices]
    for hole, each in enumerate(encoded):
        for size in sorted({len(tokens) for tokens in each.values()}, reverse=True):
            sizes = [*longest[:hole], size, *longest[hole + 1 :]]
            row, starts = row_of(texts, sizes, model.spec.mask_id)
            if row not in rows:
                rows.append(row)
            fillings = {choice: tokens for choice, tokens in each.items() if len(tokens) == size}
            asked[hole].append(Question(rows.index(row), starts[hole], fillings, tuple(each)))
    return rows, asked


def row_of(texts: list[list[int]], sizes: list[int], mask_id: int) -> tuple[list[int], list[int]]:
    """Texts with runs of masks between them, and where each run begins."""
    row, starts = list(texts[0]), []
    for size, text in zip(sizes, texts[1:], strict=True):
        starts.append(len(row))
        row += [mask_id] * size + text
    return row, starts


def encode(model: Model, text: str, *, empty: bool = False) -> list[int]:
    found = model.tokenizer.encode(text) if text else []
    if not found and not empty:
        raise InputError("A choice must not be empty.", param="choices")
    return found
