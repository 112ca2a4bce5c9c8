"""Find the answer in a text.

``strict`` and ``flexible`` are the two rules of lm_eval's GSM8K task, and ``same_text`` its comparison. ``final`` is
the forgiving rule: the last boxed value, else what follows the last ``####``, else what follows the last "answer is",
else the last number; compared as a number, so that ``$1,200.00``, ``1200`` and ``2400/2`` agree.
"""

from __future__ import annotations

import re
from fractions import Fraction

STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
FLEXIBLE = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
IGNORED = [re.compile(p) for p in (",", r"\$", r"(?s).*#### ", r"\.$")]
NUMBER = re.compile(r"[-−]?[ ]?[$€£]?[ ]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?:[ ]?/[ ]?\d+(?:\.\d+)?)?")
FRACTION = re.compile(r"\\[dt]?frac\s*\{?\s*(-?\d+)\s*\}?\s*\{?\s*(\d+)\s*\}?")
ANSWER_IS = re.compile(r"(?i)answer(?:\s+is)?\s*[:=]?\s*")


def strict(text: str) -> str | None:
    """The first number after ``#### ``, as lm_eval's strict-match."""
    found = STRICT.search(text)
    return found.group(1).strip() if found else None


def flexible(text: str) -> str | None:
    """The last thing that looks like a number, as lm_eval's flexible-extract."""
    found = FLEXIBLE.findall(text)
    return next(group for group in found[-1] if group).strip() if found else None


def same_text(answer: str | None, gold: str) -> bool:
    """lm_eval's exact match for GSM8K: commas, dollars, what precedes ``#### `` and a final dot do not count."""
    return answer is not None and clean(answer) == clean(gold)


def clean(text: str) -> str:
    """The text in small letters, without what grading ignores."""
    for pattern in IGNORED:
        text = pattern.sub("", text)
    return text.lower()


def boxed(text: str) -> str | None:
    r"""What the last ``\boxed{...}`` or ``\fbox{...}`` holds, braces balanced; None without one or if it is cut off."""
    at = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if at < 0:
        return None
    start = text.index("{", at)
    depth = 0
    for index in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[start + 1 : index].strip()
    return None


def final(text: str) -> str | None:
    """The answer by the forgiving rule, as a number's text."""
    inner = boxed(text)
    if inner is not None:
        return last_number(inner) or inner
    if "####" in text:
        return first_number(text.rsplit("####", 1)[1])
    parts = ANSWER_IS.split(text)
    if len(parts) > 1 and (found := first_number(parts[-1])):
        return found
    return last_number(text)


def numbers(text: str) -> list[str]:
    """Every number in the text, left to right; a minus between two numbers is a subtraction, not a sign."""
    text = FRACTION.sub(r" \1/\2 ", text.replace("\\$", "$").replace("{,}", ",").replace("\\!", ""))
    text = re.sub(r"(?<=[\d)])\s*[-−]\s*(?=[$\d])", " ", text)
    return [found for match in NUMBER.finditer(text) if (found := match.group().strip())]


def first_number(text: str) -> str | None:
    """The first number of a text; None without one."""
    return next(iter(numbers(text)), None)


def last_number(text: str) -> str | None:
    """The last number of a text; None without one."""
    return next(reversed(numbers(text)), None)


def value(text: str | None) -> Fraction | None:
    """A number's text as an exact fraction; None if it is none."""
    if text is None:
        return None
    plain = re.sub(r"[\s,$€£]", "", text).replace("−", "-").rstrip(".")
    above, slash, below = plain.partition("/")
    try:
        return Fraction(above) / (Fraction(below) if slash else 1)
    except (ValueError, ZeroDivisionError):
        return None


def same_value(answer: str | None, gold: str | None) -> bool:
    """Whether both are numbers, and equal."""
    left, right = value(answer), value(gold)
    return left is not None and left == right
