"""The states and marks of the viewer: one table of words, shapes and colours for page, terminal and plots.

Colours are from the Okabe-Ito palette, which colour-blind people can distinguish; every state also has its own shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MASK = "▒"


@dataclass(frozen=True, slots=True)
class Look:
    """How one state looks: ``light`` and ``dark`` are its colour on those backgrounds, ``style`` its terminal form."""

    word: str
    meaning: str
    light: str
    dark: str
    style: str


STATES = (
    Look("masked", "not decided yet", "#8a9099", "#7d8590", "#8a9099"),
    Look("fresh", "committed in this step", "#00785a", "#2fd0a0", "bold underline #009e73"),
    Look("held", "committed, may still be revoked (remasked)", "#0072b2", "#56b4e9", "#56b4e9"),
    Look("revoked", "taken back (remasked) in this step", "#b84a00", "#ff8a4c", "bold strike #d55e00"),
    Look("revised", "replaced in this step", "#9b3f74", "#e59ac4", "bold underline2 #cc79a7"),
    Look("settled", "can never change again", "#1b1f24", "#e6edf3", "default"),
    Look("frozen", "given, never decided", "#6b7178", "#9aa4ae", "italic #8a9099"),
)

LOOK = {look.word: look for look in STATES}

# Confidence minus threshold, (light, dark): orange below, blue above, and the neutral colour between them.
BELOW, ABOVE, ZERO = ("#c45a00", "#ff9a3c"), ("#0063a8", "#4aa8ff"), ("#f4f4f2", "#20262e")

LANES = (("#0072b2", "#56b4e9"), ("#b84a00", "#ff8a4c"), ("#00785a", "#2fd0a0"), ("#9b3f74", "#e59ac4"))
"""Colours of up to four lanes, (light, dark)."""


def make_visible(piece: str) -> str:
    """Replace control characters by their pictures, so that no model text can control the screen."""
    return "".join(char if char == "\n" or char.isprintable() else draw_control(char) for char in piece)


def draw_control(char: str) -> str:
    """Return the picture of an ASCII control character, the replacement character for other unprintable ones."""
    if char == "\t":
        return "    "
    if char == "\x7f":
        return "␡"
    return chr(0x2400 + ord(char)) if ord(char) < 0x20 else "\N{REPLACEMENT CHARACTER}"


def show_piece(piece: str) -> str:
    """Return a token's text as canvases show it: end-of-text and similar tokens are one small sign."""
    return "∎" if re.fullmatch(r"<\|.*\|>|<s>|</s>|<pad>|<eos>|<bos>", piece) else make_visible(piece)
