"""A verb is a function of one frozen dataclass; each field of it is a flag or an argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

import typer

Options = TypeVar("Options")
Work = Callable[[Options], None]


def group(help: str) -> typer.Typer:
    """A typer application with the project's settings: plain help, no shell-completion flags, no traceback hook."""
    return typer.Typer(
        help=help,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )


def verb(app: typer.Typer, name: str, options: type[Options], work: Work[Options]) -> None:
    """Register ``work`` as ``starr NAME``; its docstring is the help.

    ``options`` is a frozen dataclass whose fields are ``Annotated`` with typer's Option or Argument; its own flags are
    listed before the inherited ones.
    """
    app.command(name)(caller(work, options))


def family(app: typer.Typer, name: str, help: str, options: type[Options], default: Work[Options]) -> typer.Typer:
    """A group of verbs, ``starr NAME VERB``; ``starr NAME`` alone does the default work."""
    verbs = group(help)
    alone = caller(default, options, context=True)
    verbs.callback(invoke_without_command=True, no_args_is_help=False, help=help)(alone)
    app.add_typer(verbs, name=name)
    return verbs


def caller(work: Work[Options], options: type[Options], *, context: bool = False) -> Callable[..., None]:
    """A function with one parameter per field of ``options``, as typer wants it; with a context it yields to a verb."""
    hints = get_type_hints(options, include_extras=True)
    known = {field.name: field for field in fields(options)}  # type: ignore[arg-type]
    names = [name for kind in options.__mro__ for name in inspect.get_annotations(kind) if name in known]
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if known[name].default is MISSING else known[name].default,
            annotation=hints[name],
        )
        for name in names
    ]
    if context:
        hints["context"] = typer.Context
        parameters.insert(0, inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))

    def call(**given: Any) -> None:
        if context and given.pop("context").invoked_subcommand is not None:
            return
        work(options(**given))

    call.__doc__ = work.__doc__
    call.__annotations__ = hints
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call
