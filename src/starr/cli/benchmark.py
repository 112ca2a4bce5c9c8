"""The flags of every verb that decodes a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import ModelFlags, flag_of, option_flags
from starr.named import check_range
from starr.options import EVAL, Options, check_option

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from starr.cluster.jobs import Remote
    from starr.cluster.start import Size
    from starr.evals.run.runs import EvalSettings
    from starr.evals.tasks import Task
    from starr.model.load import Model

Data = Annotated[
    Path | None, typer.Option("--data", help="Rows of the benchmark.", show_default="STARR_DATA, then the hub")
]
Limit = Annotated[int | None, typer.Option("--limit", help="Only the first N items.", show_default="all")]
Rows = Annotated[int, typer.Option("--batch-size", help="Rows decoded together.")]


@dataclass(frozen=True, kw_only=True)
class Shared(ModelFlags):
    """What ``eval``, ``reproduce`` and ``tune`` share: the benchmark and how its prompts are decoded."""

    data: Data = None
    limit: Limit = None
    batch_size: Rows = 8
    max_tokens: Annotated[int | None, flag_of("max_tokens", absent="the task's")] = None
    form: Annotated[str | None, typer.Option(help="chat or base prompts.", show_default="as the model was trained")] = (
        None
    )
    decoding: Options = option_flags(EVAL, leave=("max_tokens",))
    allow_weak_sandbox: Annotated[
        bool, typer.Option("--allow-weak-sandbox", help="Run model code even where no namespaces can be created.")
    ] = False

    def prepare(self, name: str) -> tuple[Model, Task, EvalSettings]:
        """The task, checked before the model is loaded; the model; and what all runs share."""
        from starr.evals.run.runs import settings_for

        task, model = self.check(name), self.load()
        return model, task, settings_for(model, task, **self.shared())

    def shared(self) -> dict[str, Any]:
        """Keywords of ``settings_for``."""
        return {"form": self.form, "max_tokens": self.max_tokens, "options": self.decoding}

    def on_workers(self, size: Size, task: Task) -> AbstractContextManager[Remote]:
        """Workers that decode the task with the model."""
        from starr.cluster.jobs import start_remote
        from starr.cluster.worker import ModelSource
        from starr.model.device import read_dtype

        loading = ModelSource(self.model, self.device, read_dtype(self.dtype), weak_sandbox=self.allow_weak_sandbox)
        return start_remote(size, loading, task, self.batch_size, self.shared(), quiet=self.quiet)

    def check(self, name: str) -> Task:
        """The task, if all that does not need the model is right."""
        from starr.evals.grading.sandbox import check_isolation, permit_weak
        from starr.evals.run.results import CODE_TASKS
        from starr.evals.tasks import load_task

        check_range("--batch-size", self.batch_size, 1)
        if self.limit is not None:
            check_range("--limit", self.limit, 1)
        if self.max_tokens is not None:
            check_option("max_tokens", self.max_tokens)
        task = load_task(name, self.data)
        if task.name in CODE_TASKS:
            if self.allow_weak_sandbox:
                permit_weak()
            check_isolation()
        return task
