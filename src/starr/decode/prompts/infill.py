"""Text with holes: ``[MASK:n]`` stands for n masks, everything else is frozen; ``[[MASK]]`` is the text ``[MASK]``."""

from __future__ import annotations

import re
from collections.abc import Callable

from starr.decode.prompts.layout import Layout, lay_out
from starr.errors import InputError, LengthError

HOLE = re.compile(r"\[(?P<literal>\[MASK(?::[^\[\]]*)?\])\]|\[MASK(?::(?P<size>[^\[\]]*))?\]")
BARE_HOLE = re.compile(r"(?<!\[)\[MASK\](?!\])")  # a hole whose length follows from what may stand in it
ADVICE = "Write [MASK:n] for n tokens, [[MASK]] for the text itself."


def split_holes(text: str) -> list[str | int]:
    """Texts and sizes of holes, in order."""
    parts: list[str | int] = []
    written, end = "", 0
    for found in HOLE.finditer(text):
        written += text[end : found.start()]
        end = found.end()
        if found["literal"]:
            written += found["literal"]
            continue
        parts += [written, hole_size(found[0], found["size"])]
        written = ""
    parts.append(written + text[end:])
    return [part for part in parts if part != ""]


def has_holes(text: str) -> bool:
    """Whether a text has a hole, of whatever length."""
    return any(found["literal"] is None for found in HOLE.finditer(text))


def hole_size(hole: str, size: str | None) -> int:
    if size is None or not re.fullmatch(r"0*[1-9][0-9]{0,8}", size):
        raise InputError(f"A hole must have a length of at least 1, got {hole}.", hint=ADVICE, param="prompt")
    return int(size)


def infill_layout(text: str, encode: Callable[[str], list[int]], mask_id: int, room: int) -> Layout:
    """The canvas of a text with holes; raises where it has no hole, no text, or needs more than ``room`` positions."""
    parts = split_holes(text)
    holes = [part for part in parts if isinstance(part, int)]
    if not holes:
        raise InputError("There is no hole to fill.", hint=ADVICE, param="prompt")
    if not any(isinstance(part, str) and part.strip() for part in parts):
        raise InputError("There must be text beside the holes.", hint="Write what surrounds them.", param="prompt")
    if sum(holes) > room:
        raise LengthError(
            f"The holes have {sum(holes)} positions, the model has {room}.", hint="Make them shorter.", param="prompt"
        )
    return lay_out(parts, encode, mask_id)
