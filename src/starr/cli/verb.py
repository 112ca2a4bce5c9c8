"""A verb is a function of one frozen dataclass; each field of it is a flag or an argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from starr.cli.flags import SHOWN, annotation_of
from starr.options import Options

Flags = TypeVar("Flags")
Work = Callable[[Flags], None]


class PlainCommand(TyperCommand):
    """A verb whose help shows an argument by its name alone: ``PROMPT``, not ``{PROMPT}`` and ``PROMPT <str>``."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the verb in the usage line."""
        return [piece.translate({ord("{"): None, ord("}"): None}) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options."""
        parts: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for shown in self.get_params(ctx):
            if line := shown.get_help_record(ctx):
                name = line[0].partition(" ")[0] if shown.param_type_name == "argument" else line[0]
                parts[shown.param_type_name].append((name, line[1]))
        for kind, lines in parts.items():
            if lines:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(lines)


def group(help: str, *, completion: bool = False) -> typer.Typer:
    """A typer application with the project's settings: plain help, no traceback hook."""
    return typer.Typer(
        help=help,
        no_args_is_help=True,
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )


def verb(app: typer.Typer, name: str, options: type[Flags], work: Work[Flags]) -> None:
    """Register ``work`` as ``starr NAME``; its docstring is the help.

    ``options`` is a frozen dataclass whose fields are ``Annotated`` with typer's Option or Argument, or made by
    ``option_flags``; its own flags are listed before the inherited ones.
    """
    app.command(name, cls=PlainCommand)(caller(work, options))


def family(app: typer.Typer, name: str, help: str, options: type[Flags], default: Work[Flags]) -> typer.Typer:
    """A group of verbs, ``starr NAME VERB``; ``starr NAME`` alone does the default work."""
    verbs = group(help)
    alone = caller(default, options, context=True)
    verbs.callback(invoke_without_command=True, no_args_is_help=False, help=help)(alone)
    app.add_typer(verbs, name=name)
    return verbs


def caller(work: Work[Flags], kind: type[Flags], *, context: bool = False) -> Callable[..., None]:
    """A function with one parameter per flag of ``kind``, as typer wants it; with a context it yields to a verb."""
    parameters = flags_of(kind)
    if context:
        parameters.insert(0, inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))

    def call(**given: Any) -> None:
        if context and given.pop("context").invoked_subcommand is not None:
            return
        work(kind(**gathered(kind, given)))

    call.__doc__ = work.__doc__
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def flags_of(kind: type) -> list[inspect.Parameter]:
    """One parameter per flag, those of a class before those that it inherits."""
    hints = get_type_hints(kind, include_extras=True)
    known = {field.name: field for field in fields(kind)}
    names = [name for part in kind.__mro__ for name in inspect.get_annotations(part) if name in known]
    found = []
    for name in dict.fromkeys(names):
        if shown := known[name].metadata.get(SHOWN):
            found += [parameter(option.name, annotation_of(option), option.default) for option in shown]
        else:
            found.append(parameter(name, hints[name], known[name].default))
    return found


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """A keyword of the function that typer calls."""
    default = inspect.Parameter.empty if default is MISSING else default
    for shown in getattr(annotation, "__metadata__", ()):
        if isinstance(shown, OptionInfo) and shown.metavar is None:
            if "list[str]" in str(annotation.__origin__):
                shown.metavar = "<str>"  # each time that it is given
            elif shown.min is not None or shown.max is not None:
                shown.metavar = "<float>" if "float" in str(annotation.__origin__) else "<int>"  # not "<int range>"
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def gathered(kind: type, given: dict[str, Any]) -> dict[str, Any]:
    """What was given as the fields of ``kind`` want it: flags of decoding are joined to ``Options``."""
    rest = dict(given)
    for field in fields(kind):
        if shown := field.metadata.get(SHOWN):
            rest[field.name] = Options(**{option.name: rest.pop(option.name) for option in shown})
    return rest
