"""``starr lm-eval``: lm_eval's own command line, with our model class in it. Behind the extra [lm-eval]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from starr.errors import InputError
from starr.optional import need

TASKS = Path(__file__).parents[1] / "integrations" / "lm_eval_tasks"
OTHER_COMMANDS = ("ls", "validate")


def add(app: typer.Typer) -> None:
    """Add ``starr lm-eval``, which hands all its flags to lm_eval."""
    settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command("lm-eval", context_settings=settings)(lm_eval)


def lm_eval(
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGUMENT", help="lm_eval's own.")] = None,
) -> None:
    """Run lm_eval with our models.

    All arguments are lm_eval's own; `--model starr` is the default, and our options are `--model_args` and
    `--gen_kwargs`. The bundled benchmarks are the tasks starr_word_problems,
    starr_list_functions, starr_lines and starr_grids.
    """
    need("lm-eval", "`starr lm-eval`")
    from lm_eval.__main__ import cli_evaluate

    import starr.integrations.lm_eval  # noqa: F401  (registers the model class)

    sys.argv = ["starr lm-eval", *completed([word for word in arguments or [] if word != "--debug"])]
    try:
        cli_evaluate()
    except SystemExit as end:
        raise typer.Exit(end.code if isinstance(end.code, int) else 1) from None
    except (ValueError, KeyError) as error:
        raise InputError(f"lm_eval: {error}", hint="--debug shows where.") from error


def completed(arguments: list[str]) -> list[str]:
    """With our model and the folder of our tasks, unless the user gives others."""
    if not arguments or arguments[0] in OTHER_COMMANDS or "--help" in arguments or "-h" in arguments:
        return arguments
    names = {word.partition("=")[0] for word in arguments}
    if not names & {"--model", "-M", "--config", "-C"}:
        arguments = [*arguments, "--model", "starr"]
    return arguments if "--include_path" in names else [*arguments, "--include_path", str(TASKS)]
