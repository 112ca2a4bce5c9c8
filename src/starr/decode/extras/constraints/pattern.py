"""A user's expression, read as one of the whole answer; what depends on surroundings or memory is refused by name.

``child`` puts a sentinel in front of every expression and behind it, a character that no text has. The library's
automaton also knows how to begin anywhere in a text, and prefers the first alternative that ends; with the sentinels it
begins once, ends once, and stays as small as the expression. So whatever says "any but" must leave the sentinel out.

Readers of expressions differ in what ``\\w`` and its like are. Here each is what the library and Python agree on; in a
pattern of a JSON string, what JavaScript says, too. So what is written matches for every reader. Nor does "any but"
let in what such a string writes with a backslash only.
"""

from __future__ import annotations

import re

from starr.errors import InputError

SENTINEL = r"\x{10ffff}"
ESCAPED = r"\"\\\x00-\x1f\x7f\u2028\u2029"  # what a JSON string writes with a backslash, or JavaScript ends a line with
CLASS_BODY = r"\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]"
PARTS = re.compile(
    r"(?P<look>\(\?(?:=|!|<=|<!))|(?P<atomic>\(\?>)|(?P<possessive>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\+)"
    r"|(?P<back>\\[1-9]|\\k|\(\?P=)|(?P<edge>\\[bBAzZG]|[\^$])"
    rf"|(?P<negated>\[\^{CLASS_BODY})|(?P<class>\[{CLASS_BODY})"
    r"|(?P<escape>\\.)|(?P<dot>\.)|(?P<flags>\(\?[a-zA-Z]*s)",
    re.DOTALL,
)
NAMES = {
    "look": "a look-around",
    "atomic": "an atomic group",
    "possessive": "a possessive repeat",
    "back": "a back reference",
    "edge": "an anchor or word boundary inside",
}
NARROW = {  # what every reader takes
    "d": r"[\d&&\p{age=14.0}]",  # Python 3.11 has the characters of Unicode 14
    "w": r"[\p{L}\p{Nd}\p{Nl}_&&\p{age=14.0}]",
    "D": r"\D",
    "W": r"[\W&&[^\p{N}]]",
    "S": r"[\S&&[^\x1c-\x1f]]",
}
PLAIN = {"<": "<", ">": ">"}  # the library has word boundaries of that name
WIDE = PLAIN | {"w": r"[\w\p{N}]", "s": r"[\s\x1c-\x1f\ufeff]"}  # what some reader takes
IN_STRINGS = {"d": "[0-9]", "w": "[0-9A-Za-z_]", "s": "[ ]"}


def whole_match(text: str, param: str, *, quoted: bool = False) -> str:
    """The expression with nothing that depends on its surroundings; ``quoted``: within a JSON string.

    ``^`` in front and ``$`` behind say nothing more about a whole answer and are dropped.
    """
    text = text.removeprefix("^")
    if text.endswith("$") and (len(text) - len(text[:-1].rstrip("\\"))) % 2 == 1:
        text = text[:-1]
    line_ends = any(found.lastgroup == "flags" for found in PARTS.finditer(text))
    barred = f"[^{ESCAPED if quoted else ''}{SENTINEL}]"
    narrow = NARROW | (IN_STRINGS if quoted else {})
    wide = WIDE | {"D": f"[^{narrow['d']}]", "W": f"[^{narrow['w']}]"}
    narrow = {name: f"[{found}&&{barred}]" if name.isupper() else found for name, found in narrow.items()} | PLAIN

    def part(found: re.Match[str]) -> str:
        kind, written = str(found.lastgroup), found[0]
        if kind in NAMES:
            raise InputError(
                f"The expression has {NAMES[kind]}, {written!r}, which cannot be used here.",
                hint="An expression describes the whole answer; write it without.",
                param=param,
            )
        if kind == "dot":
            return barred if line_ends else rf"[[^\n]&&{barred}]"
        if kind == "negated":
            return f"[{spelled(written, wide)}&&{barred}]"
        return spelled(written, narrow) if kind in ("class", "escape") else written

    return PARTS.sub(part, text)


def spelled(text: str, names: dict[str, str]) -> str:
    """A text with what stands behind its backslashes written out."""
    return re.sub(r"\\(.)", lambda found: names.get(found[1], found[0]), text, flags=re.DOTALL)
