"""What a benchmark is: items with prompts in two forms, and a grade for an answer's text."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starr.errors import InputError, did_you_mean

MODULES = {
    "gsm8k": "gsm8k",
    "math500": "math500",
    "humaneval": "humaneval",
    "mbpp": "mbpp",
    "word-problems": "bundled",
    "list-functions": "bundled",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One question. Base form: ``prompt``. Chat form: ``chat`` is the user's turn, ``prefix`` begins the answer."""

    id: str
    prompt: str
    chat: str
    gold: str  # the expected answer, as shown to people
    reference: str  # a text that must be graded correct
    prefix: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)  # what grading needs


@dataclass(frozen=True, slots=True)
class Grade:
    """The answer found in a text, and each way of scoring it."""

    answer: str | None
    scores: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Task:
    """Items in their fixed order; ``primary`` names the score that counts as accuracy."""

    name: str
    items: Sequence[Item]
    grade: Callable[[Item, str], Grade]
    primary: str
    max_tokens: int
    stops: tuple[str, ...] = ()


def load_task(name: str, data: Path | None = None) -> Task:
    """A benchmark by name; its rows come from ``data``, the environment or the hub (bundled ones from the package)."""
    if name not in MODULES:
        raise InputError(f"Unknown task {name!r}.", hint=did_you_mean(name, MODULES), param="task")
    module = importlib.import_module(f"starr.evals.{MODULES[name]}")
    task: Task = module.load(name, data)
    return task


def cut_at(text: str, stops: tuple[str, ...]) -> str:
    """The text before the first stop string."""
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text
