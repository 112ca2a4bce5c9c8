"""Whether an answer to a word problem is well formed: sentences that the generator can write, correct arithmetic.

Committing several tokens at once mixes two wordings into one sentence ("So there has 5 * 5 = 25 pens") while the last
number may still be right; this sees it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from starr.evals.tasks.problem import Problem
from starr.evals.tasks.word_patterns import TOLD, WORDINGS
from starr.evals.tasks.word_steps import SIGNS, compute

TEMPLATE = re.compile(r"^Step \d+:|\nStep \d+:|\n(?=####)")  # the frozen text of an in-place template
SENTENCE = re.compile(r"(?<=\.) ")
NUMBER = r"0|[1-9][0-9]*"
EQUATION = rf"(?P<left>{NUMBER}) (?P<sign>[-+*/]) (?P<right>{NUMBER}) = (?P<result>{NUMBER})"
FILLERS = {
    "S": r"(?P<name>\w+)", "M": r"(?P<name>[A-Z]\w+)", "e": EQUATION, "T": r"(?P<things>\w+)",
    "k": rf"(?P<number>{NUMBER})", "a": rf"(?P<result>{NUMBER})",
}  # fmt: skip


@cache
def patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(sign, pattern) of every wording; a told amount has no sign."""
    wordings = [(SIGNS[kind], wording) for kind, found in WORDINGS.items() for wording in found]
    return tuple((sign, re.compile(fill(text))) for sign, text in (*wordings, *(("", text) for text in TOLD)))


def fill(wording: str) -> str:
    """A wording as a pattern over whole sentences."""
    pattern = re.sub(r"\\\{(\w)\\\}", lambda found: FILLERS[found[1]], re.escape(wording))
    return pattern.replace(r"\ ", " ")


def formed(problem: Problem, text: str) -> bool:
    """Sentences use the problem's names and things, arithmetic is correct, the last result follows ``####``."""
    plain = " ".join(TEMPLATE.sub(" ", text).split())
    body, mark, number = plain.partition(" #### ")
    results = [result_of(sentence, problem) for sentence in SENTENCE.split(body)]
    return bool(mark) and None not in results and number == str(results[-1])


def result_of(sentence: str, problem: Problem) -> int | None:
    """The amount that a well-formed sentence comes to; None for any other sentence."""
    for sign, pattern in patterns():
        found = pattern.fullmatch(sentence)
        if found and is_true(found.groupdict(), sign, problem):
            return int(found["result"])
    return None


def is_true(parts: Mapping[str, str | None], sign: str, problem: Problem) -> bool:
    """Whether names and things are the problem's and the equation holds; a division leaves no remainder."""
    first, things = problem.facts["first"], problem.facts["things"]
    if parts.get("name", first) not in people(problem) or parts.get("things", things) != things:
        return False
    if not sign:
        return True
    left, right, result = (int(str(parts[part])) for part in ("left", "right", "result"))
    if parts["sign"] != sign or parts.get("number", str(right)) != str(right):
        return False
    if sign == "/" and (not right or left % right):
        return False
    return compute(sign, left, right) == result


def people(problem: Problem) -> set[str]:
    """What the problem's people may be called; a second person is drawn for every story and not always told of."""
    first, second, pronoun = (problem.facts[fact] for fact in ("first", "second", "pronoun"))
    return {first, pronoun, *([second] if second in problem.prompt else [])}
