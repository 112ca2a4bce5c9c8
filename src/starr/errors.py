"""Every error that a user can meet: one line with the rule, the value and what to do.

The command line prints ``str(error)`` and exits with ``exit_code``; the server answers ``status`` with the same text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NEAR = 0.7  # how alike two words must be to be taken for each other: of gpu and cpu, two letters in three are alike


class StarrError(Exception):
    """The base of all errors that users see without a traceback."""

    exit_code = 1
    status = 500
    code: str | None = None  # as OpenAI's API spells the kind of error, where it has one

    def __init__(self, message: str, *, hint: str = "", param: str | None = None) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint, self.param = message, hint, param


class InputError(StarrError):
    """A value that breaks a rule: wrong option, prompt, template or file given by the user."""

    exit_code = 2
    status = 400


class LengthError(InputError):
    """A prompt or canvas larger than the model's context."""

    code = "context_length_exceeded"


class LoadError(InputError):
    """A model, tokenizer, trace or data file that cannot be read as what it should be."""


class WorkError(StarrError):
    """The work itself failed: disk full, a child process died."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Write a hint with the one known word that is clearly near, or with all of them when none is."""
    names = sorted(known)
    if not names:
        return "There is none."
    near = difflib.get_close_matches(word, names, n=1, cutoff=NEAR)
    near += [name for name in names if sorted(name) == sorted(word)]
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(names)}."


def counted(number: int, thing: str) -> str:
    """``1 forward``, ``2 forwards``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
