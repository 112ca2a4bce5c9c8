"""All verbs on one application, in the order a newcomer meets them."""

from __future__ import annotations

from typing import Annotated

import typer

from starr.cli import (
    bench,
    calibrate,
    chat,
    choose,
    demo,
    doctor,
    evaluate,
    lm_eval,
    models,
    race,
    run,
    serve,
    strategies,
    trace,
)
from starr.cli.verb import group

app = group("Fast decoding for masked diffusion language models. Start with `starr demo`.", completion=True)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"starr {installed('starr-dlm')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


for family in (
    run,
    chat,
    choose,
    race,
    demo,
    trace,
    evaluate,
    calibrate,
    lm_eval,
    bench,
    serve,
    strategies,
    models,
    doctor,
):
    family.add(app)
