"""Prompts to fit a rule on: fresh ones where a task generates them, else the task's own, without their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starr.api import build_request
from starr.evals.tasks import load_task
from starr.evals.tasks.bundled import SOURCES
from starr.options import Options

if TYPE_CHECKING:
    from starr.decode.request import Request
    from starr.model.load import Model

SEED = 77_000  # apart from the seeds of training and test sets


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and the length of the canvas that it is decoded on."""

    text: str
    max_tokens: int


def task_prompts(tasks: Sequence[str], count: int) -> list[Prompt]:
    """So many prompts of all tasks together, in turn; generated ones are of the training split, not test items."""
    each = [prompts_of(task, -(-count // len(tasks))) for task in tasks]
    longest = max(map(len, each))
    return [found[place] for place in range(longest) for found in each if place < len(found)][:count]


def prompts_of(task: str, count: int) -> list[Prompt]:
    """So many prompts of one task, with its canvas."""
    found = load_task(task)
    if task in SOURCES:
        texts = [problem.prompt for problem in SOURCES[task].generate(SEED, count)]
    else:
        texts = [item.chat for item in found.items[:count]]
    return [Prompt(text, found.max_tokens) for text in texts]


def request_for(model: Model, prompt: Prompt) -> Request:
    """A prompt's row; whoever decodes it says with which strategy."""
    return build_request(model, prompt.text, Options(max_tokens=prompt.max_tokens, strategy="confidence"))
