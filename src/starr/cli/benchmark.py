"""The flags of every verb that decodes a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from starr.cli.flags import Place
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.evals.runs import Settings
    from starr.evals.tasks import Task
    from starr.model.load import Model

Data = Annotated[
    Path | None, typer.Option("--data", help="Rows of the benchmark.", show_default="STARR_DATA, then the hub")
]
Limit = Annotated[int | None, typer.Option("--limit", help="Only the first N items.", show_default="all")]
Rows = Annotated[int, typer.Option("--batch-size", help="Rows decoded together.")]


@dataclass(frozen=True, kw_only=True)
class Shared(Place):
    """What ``eval``, ``reproduce`` and ``tune`` share: the benchmark and how its prompts are decoded."""

    data: Data = None
    limit: Limit = None
    batch_size: Rows = 8
    max_tokens: Annotated[int | None, typer.Option(help="Length of the canvas.", show_default="the task's")] = None
    form: Annotated[str | None, typer.Option(help="chat or base prompts.", show_default="as the model was trained")] = (
        None
    )
    seed: Annotated[int, typer.Option(help="Same seed, same tokens.")] = 0
    temperature: Annotated[float, typer.Option(help="Gumbel noise on the proposals; 0 is greedy.")] = 0.0
    enforce: Annotated[str, typer.Option(help="safe or literal.")] = "safe"
    eos: Annotated[str, typer.Option(help="End-of-text: normal, never, or last.")] = "normal"

    def prepare(self, name: str) -> tuple[Model, Task, Settings]:
        """The task, checked before the model is loaded; the model; and what all runs share."""
        from starr.evals.runs import settings_for
        from starr.evals.tasks import load_task

        if self.batch_size < 1:
            raise InputError(f"--batch-size must be at least 1, got {self.batch_size}.", param="batch_size")
        if self.limit is not None and self.limit < 1:
            raise InputError(f"--limit must be at least 1, got {self.limit}.", param="limit")
        task = load_task(name, self.data)
        model = self.load()
        settings = settings_for(
            model, task, form=self.form, max_tokens=self.max_tokens, seed=self.seed, temperature=self.temperature,
            enforce=self.enforce, eos=self.eos,
        )  # fmt: skip
        return model, task, settings
