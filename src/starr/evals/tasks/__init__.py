"""What a benchmark is: items with prompts in two forms, and a grade for an answer's text."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from starr.errors import InputError, did_you_mean
from starr.plugins import HOLDERS, EntryPoints

MODULES = {
    "gsm8k": "gsm8k",
    "math500": "math500",
    "humaneval": "humaneval",
    "mbpp": "mbpp",
    "word-problems": "bundled",
    "list-functions": "bundled",
    "lines": "bundled",
    "grids": "bundled",
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
    kind: str = ""  # the operation or tier that figures are split by


@dataclass(frozen=True, slots=True)
class Grade:
    """The answer found in a text, and each way of scoring it."""

    answer: str | None
    scores: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Task:
    """Items in their fixed order; ``primary`` names the score that says whether an answer is right.

    ``formed``, where a task has it, says whether every part of a text is one that the task allows. Comparisons then go
    by both: right and well formed. Without it only the answer is graded.
    """

    name: str
    items: Sequence[Item]
    grade: Callable[[Item, str], Grade]
    primary: str
    max_tokens: int
    stops: tuple[str, ...] = ()
    formed: Callable[[Item, str], bool] | None = None


TaskLoader = Callable[[str, Path | None], Task]
"""Makes a task of its name and of the file with its rows, None where the task finds them itself."""


class TasksFromOutside:
    """Tasks that a script has registered, and those of installed packages (entry-point group ``starr.tasks``).

    An entry point is named like its task. It gives the task itself, or a ``TaskLoader``.
    """

    kind = "task"

    def __init__(self) -> None:
        self.loaders: dict[str, TaskLoader] = {}
        self.outside = EntryPoints("starr.tasks")
        HOLDERS.append(self)

    def takes(self, thing: Any) -> bool:
        """Whether a thing is a task."""
        return isinstance(thing, Task)

    def add(self, task: Task) -> Task:
        """Keep a task under its name; it replaces one of the same name that was registered before."""
        self.keep(task.name, lambda name, data: task)
        return task

    def keep(self, name: str, loader: TaskLoader) -> None:
        """Keep what makes a task."""
        if name in MODULES:
            raise InputError(f"The task name {name!r} is taken.", hint="Choose another.")
        self.loaders[name] = loader

    def all(self) -> dict[str, TaskLoader]:
        """Every task from outside, by name."""
        self.outside.load(self._add_outside)
        return self.loaders

    def _add_outside(self, point: EntryPoint, thing: Any) -> None:
        if isinstance(thing, Task):
            self.add(thing)
        elif callable(thing):
            self.keep(point.name, thing)
        else:
            raise InputError(f"it is not a task and makes none, but {thing!r}.")


OUTSIDE = TasksFromOutside()


def load_task(name: str, data: Path | None = None) -> Task:
    """A benchmark by name; its rows come from ``data``, the environment or the hub (bundled ones from the package)."""
    if name in MODULES:
        load: TaskLoader = importlib.import_module(f"starr.evals.tasks.{MODULES[name]}").load
        return load(name, data)
    others = OUTSIDE.all()
    if name not in others:
        raise InputError(f"Unknown task {name!r}.", hint=did_you_mean(name, [*MODULES, *others]), param="task")
    return others[name](name, data)
