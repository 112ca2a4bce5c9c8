"""The flags that verbs share, each defined once, in the words of the Python arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.report import note
from starr.errors import InputError
from starr.options import FLAG, DecodingOption, Options, by_name, options_at

if TYPE_CHECKING:
    from starr.model.files.memory import Room
    from starr.model.load import Model

Prompt = Annotated[str | None, typer.Argument(metavar="PROMPT", help="The prompt; - or a pipe reads standard input.")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="File to write.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FamilyName = Annotated[
    str | None, typer.Option(help="Read the checkpoint as one of this family.", show_default="by its config.json")
]
Attention = Annotated[
    str | None, typer.Option(help="full or blocks:n, if the checkpoint does not say.", show_default="by its files")
]
Live = Annotated[bool, typer.Option("--live", help="Show the canvas filling in the terminal.")]


SHOWN = "shown"
TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool}


def option_flags(door: str = FLAG, *, leave: Sequence[str] = ()) -> Any:
    """A field of type ``Options`` that stands for one flag per option that a door shows, except those left out."""
    shown = tuple(option for option in options_at(door) if option.name not in leave)
    return field(default=Options(), metadata={SHOWN: shown})


def annotation_of(option: DecodingOption) -> Any:
    """The type of an option's flag with its help, as typer reads it."""
    kind = TYPES[option.type]
    several = GenericAlias(list, (kind,)) if option.repeats else kind
    return Annotated[several | None if option.nullable else several, flag_of(option.name)]


def flag_of(name: str, *, absent: str = "") -> Any:
    """The flag of an option: its help, and what leaving it out means."""
    option = by_name()[name]
    dashed = "--" + name.replace("_", "-")
    switch = (f"{dashed}/--no-{dashed[2:]}" if option.nullable else dashed,) if option.type == "bool" else ()
    help = f"{option.help.removesuffix('.')}; repeatable." if option.repeats else option.help
    return typer.Option(*switch, help=help, show_default=absent or option.absent or True)


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every verb takes."""

    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors to standard error.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True, kw_only=True)
class ModelFlags(Common):
    """Which model, and where it runs."""

    model: Annotated[
        str | None,
        typer.Option(help="bundled-dream, bundled-blocks, a folder or a hub id.", show_default="the bundled model"),
    ] = None
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.", show_default="cuda if there is one, else cpu")
    ] = None
    dtype: Annotated[
        str | None, typer.Option(help="float32, bfloat16 or float16.", show_default="the fastest that is safe here")
    ] = None

    threads: Annotated[
        int | None,
        typer.Option(help="CPU threads for each forward.", show_default="chosen by model size and idle cores"),
    ] = None
    family: FamilyName = None
    attention: Attention = None

    def load(self) -> Model:
        """The model, loaded; standard error says once for this CPU and torch which dtype it chose, if it had to."""
        import starr
        from starr.cli.loading import loading_bar
        from starr.model.device import explain_dtype, read_dtype
        from starr.model.numbers import read_outcome

        new = read_outcome("bfloat16") is None or self.debug
        with loading_bar(self.quiet) as progress:
            model = starr.load(
                self.model,
                device=self.device,
                dtype=self.dtype,
                threads=self.threads,
                family=self.family,
                attention=self.attention,
                room=self.room(),
                progress=progress,
            )
        if new and read_dtype(self.dtype) is None and model.device.type == "cpu":
            self.say(explain_dtype(model.dtype, model.spec.shape.width))
        return model

    def room(self) -> Room:
        """The forward that is asked for, as far as the flags tell: rows and canvas."""
        from starr.model.files.memory import Room

        rows = getattr(self, "max_rows", None) or getattr(self, "batch_size", None) or 1
        canvas = getattr(self, "max_tokens", None) or getattr(getattr(self, "decoding", None), "max_tokens", None)
        return Room(rows, canvas or Options().max_tokens)

    def say(self, text: str) -> None:
        """A line for people."""
        note(text, self.quiet)


@dataclass(frozen=True, kw_only=True)
class Decode(ModelFlags):
    """How one strategy decodes."""

    decoding: Options = option_flags()
    ice_fill: Annotated[
        bool, typer.Option("--ice-fill", help="With --ice: also commit the thinking masks that are left.")
    ] = False

    def parse(self) -> Options:
        """Parse the options of decoding, so that a wrong one is refused before a model is loaded."""
        from starr.api import parse_options, read_files

        found = parse_options(read_files(self.decoding))
        if not self.ice_fill:
            return found
        if found.ice is None:
            raise InputError("--ice-fill needs --ice.", param="ice_fill")
        return replace(found, ice=replace(found.ice, fill=True))  # type: ignore[type-var]
