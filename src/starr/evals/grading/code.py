"""Code in a model's answer: where it is, and whether it passes its tests in the sandbox."""

from __future__ import annotations

import re

from starr.evals.grading.sandbox import run_code
from starr.evals.tasks import Grade

FENCE = re.compile(r"```(?:[Pp]ython)?[ \t]*\r?\n(.*?)(?:```|\Z)", re.DOTALL)


def before_fence(text: str) -> str:
    """What precedes the fence that closes an answer begun inside one."""
    return text.split("```", 1)[0]


def fenced(text: str, word: str) -> str | None:
    """The longest fenced part that holds a word, e.g. ``def name``."""
    parts = [part for part in FENCE.findall(text) if word in part]
    return max(parts, key=len, default=None)


def grade_code(strict: str, flexible: str | None, tests: str, setup: str = "") -> Grade:
    """strict: the answer where the protocol puts it; flexible: that, or else code found anywhere in the answer."""
    outcome = run_code(strict, tests, setup=setup)
    passed = outcome.passed
    if not passed and flexible is not None:
        second = run_code(flexible, tests, setup=setup)
        return Grade(outcome.reason, {"strict": False, "flexible": second.passed})
    return Grade(outcome.reason, {"strict": passed, "flexible": passed})
