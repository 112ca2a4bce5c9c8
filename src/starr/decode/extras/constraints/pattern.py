"""A user's expression, read as one of the whole answer; what no automaton has is refused by name.

``child`` puts a sentinel in front of every expression and behind it, a character that no text has. The library's
automaton also knows how to begin anywhere in a text, and prefers the first alternative that ends; with the sentinels it
begins once, ends once, and stays as small as the expression. So whatever says "any but" must leave the sentinel out.
"""

from __future__ import annotations

import re

from starr.errors import InputError

SENTINEL = r"\x{10ffff}"
CLASS_BODY = r"\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]"
PARTS = re.compile(
    r"(?P<look>\(\?(?:=|!|<=|<!))|(?P<atomic>\(\?>)|(?P<back>\\[1-9]|\\k|\(\?P=)|(?P<edge>\\[bBAzZG]|[\^$])"
    rf"|(?P<negated>\[\^{CLASS_BODY})|(?P<class>\[{CLASS_BODY})"
    r"|(?P<other>\\[DWS])|(?P<escape>\\.)|(?P<dot>\.)|(?P<flags>\(\?[a-zA-Z]*s)",
    re.DOTALL,
)
NAMES = {
    "look": "a look-around",
    "atomic": "an atomic group",
    "back": "a back reference",
    "edge": "an anchor or word boundary inside",
}


def whole_match(text: str, param: str) -> str:
    """The expression with nothing that depends on its surroundings.

    ``^`` in front and ``$`` behind say nothing more about a whole answer and are dropped.
    """
    text = text.removeprefix("^")
    if text.endswith("$") and (len(text) - len(text[:-1].rstrip("\\"))) % 2 == 1:
        text = text[:-1]
    any_but_line_end = not any(found.lastgroup == "flags" for found in PARTS.finditer(text))

    def part(found: re.Match[str]) -> str:
        kind, written = str(found.lastgroup), found[0]
        if kind in NAMES:
            raise InputError(
                f"The expression has {NAMES[kind]}, {written!r}, which no regular language can express.",
                hint="An expression describes the whole answer; write it without.",
                param=param,
            )
        if kind == "dot":
            return rf"[^\n{SENTINEL}]" if any_but_line_end else written
        return f"[{written}&&[^{SENTINEL}]]" if kind in ("negated", "other") else written

    return PARTS.sub(part, text)
