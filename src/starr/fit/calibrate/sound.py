"""Whether a text is sound, by the model's own word.

A token is *plausible* if, given the prompt and the text before it alone, its probability is at least a tenth (>=) of
the likeliest token's. A free choice is plausible, whichever way it fell; half of one wording behind half of another is
not, nor is a wrong digit, however well the text behind it was made to fit. A text is *sound* if every token is
plausible that differs from a careful run's text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from starr.decode.choose.answers import forwards_of, log_probabilities, states_of

if TYPE_CHECKING:
    from starr.model.load import Model

PLAUSIBLE = math.log(0.1)


@dataclass(frozen=True, slots=True)
class Written:
    """A text beside the careful run's; canvases as ``until_end`` gives them."""

    prompt: list[int]
    careful: Sequence[int]
    text: Sequence[int]


def until_end(text: Sequence[int], ends: tuple[int, ...]) -> tuple[int, ...]:
    """The text with an end-of-text at every position behind its first one."""
    end = next((place for place, token in enumerate(text) if token in ends), len(text))
    return tuple(text[:end]) + (ends[0],) * (len(text) - end)


def implausible(model: Model, texts: Sequence[Written]) -> list[list[int]]:
    """Find the implausible tokens of each text, at places where it differs from the careful run's text."""
    found = []
    for written in texts:
        places = differing(written, model.spec.eos_ids)
        asked = [(place, written.text[place]) for place in places]
        odd = implausible_at(model, written.prompt, written.text, asked)
        found.append([place for place, bad in zip(places, odd, strict=True) if bad])
    return found


def implausible_at(
    model: Model, prompt: list[int], text: Sequence[int], asked: Sequence[tuple[int, int]]
) -> list[bool]:
    """Whether each (place, token) would be implausible behind what a text has before that place."""
    mask, length = model.spec.mask_id, len(text)
    rows = [[*prompt, *text[:place], *[mask] * (length - place)] for place, _ in asked]
    ratios = log_ratios(model, rows, [(len(prompt), *pair) for pair in asked])
    return [ratio < PLAUSIBLE for ratio in ratios]


def differing(written: Written, ends: tuple[int, ...]) -> list[int]:
    """Places up to the text's end-of-text at which it differs from the careful run's."""
    last = next((place for place, token in enumerate(written.text) if token in ends), len(written.text) - 1)
    return [place for place in range(last + 1) if written.text[place] != written.careful[place]]


@torch.inference_mode()
def log_ratios(model: Model, rows: list[list[int]], asked: Sequence[tuple[int, int, int]]) -> list[float]:
    """log(P of a token / P of the likeliest) for (start, place, token) of each row, with masks from the place on."""
    found: list[float] = []
    for call in forwards_of(rows) if rows else ():
        some = asked[call.start : call.stop]
        places = [[start + place] for start, place, _ in some]
        states = states_of(model, rows[call.start : call.stop], places, model.spec.origin(some[0][0]))
        chances = log_probabilities(model, states[:, 0])
        own = chances.gather(1, torch.tensor([[token] for *_, token in some], device=chances.device))
        found += (own - chances.amax(dim=1, keepdim=True))[:, 0].tolist()
    return found
