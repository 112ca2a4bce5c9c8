"""All verbs on one application, in the order a newcomer meets them."""

from __future__ import annotations

from typing import Annotated

import typer

from starr.cli import bench, chat, demo, doctor, evaluate, models, race, run, serve, strategies, trace
from starr.cli.verb import group

app = group("Fast decoding for masked diffusion language models. Start with `starr demo`.")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"starr {installed('starr-dlm')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


for family in (run, chat, race, demo, trace, evaluate, bench, serve, strategies, models, doctor):
    family.add(app)
