"""The flags that verbs share, each defined once, in the words of the Python arguments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model

Out = Annotated[Path | None, typer.Option("-o", "--out", help="File to write.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Live = Annotated[bool, typer.Option("--live", help="Show the canvas filling in the terminal.")]


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every verb takes."""

    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on standard error but errors.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True, kw_only=True)
class Place(Common):
    """Which model, and where it runs."""

    model: Annotated[str | None, typer.Option(help="A folder or a hub id.", show_default="the bundled model")] = None
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.", show_default="the best there is")] = (
        None
    )
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.", show_default="float32 on cpu")] = (
        None
    )

    def load(self) -> Model:
        """The model, loaded."""
        import starr

        return starr.load(self.model, device=self.device, dtype=self.dtype)


@dataclass(frozen=True, kw_only=True)
class Canvas(Place):
    """How any strategy decodes: everything but the strategy itself."""

    cache: Annotated[str, typer.Option(help="Which positions a forward recomputes: name:option=value.")] = "none"
    max_tokens: Annotated[int, typer.Option(help="Length of the canvas.")] = 128
    block_length: Annotated[
        int | None, typer.Option(help="Decode in blocks of this length.", show_default="the whole canvas at once")
    ] = None
    temperature: Annotated[float, typer.Option(help="Gumbel noise on the proposals; 0 is greedy.")] = 0.0
    top_p: Annotated[float, typer.Option(help="Sample from the most likely tokens of this total probability.")] = 1.0
    top_k: Annotated[int, typer.Option(help="Sample from this many most likely tokens; 0 is all.")] = 0
    seed: Annotated[int, typer.Option(help="Same seed, same tokens.")] = 0
    max_forwards: Annotated[
        int | None, typer.Option(help="The last of these forwards commits the rest.", show_default="no limit")
    ] = None
    enforce: Annotated[str, typer.Option(help="safe: every step makes progress; literal: the rule as printed.")] = (
        "safe"
    )
    guidance: Annotated[float, typer.Option(help="Classifier-free guidance; 0 is off.")] = 0.0
    eos: Annotated[str, typer.Option(help="End-of-text: normal, never, or last to be committed.")] = "normal"
    stop: Annotated[str, typer.Option(help="Rules that end a run early, joined by +: eos, prophet:option=value.")] = (
        "none"
    )
    ice: Annotated[
        str | None, typer.Option(help="Think in place: ice-sp, ice-pp or ice:option=value.", show_default="off")
    ] = None
    ice_fill: Annotated[
        bool, typer.Option("--ice-fill", help="With --ice: commit the thinking masks that remain, too.")
    ] = False
    chat: Annotated[
        bool | None, typer.Option("--chat/--no-chat", help="Use the chat template.", show_default="if there is one")
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``starr.generate``, all but the strategy; text forms are checked here, before a load."""
        import starr
        from starr.prompting.ice import ice
        from starr.stop import stop_rules

        if self.ice_fill and self.ice is None:
            raise InputError("--ice-fill needs --ice.", param="ice_fill")
        names = (
            *("max_tokens", "block_length", "temperature", "top_p", "top_k", "seed"),
            *("max_forwards", "enforce", "guidance", "eos", "chat"),
        )
        forms = {
            "cache": starr.cache(self.cache),
            "stop": stop_rules(self.stop),
            "ice": None if self.ice is None else ice(self.ice, fill=self.ice_fill),
        }
        return forms | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class Decode(Canvas):
    """How one strategy decodes."""

    strategy: Annotated[str, typer.Option(help="name:option=value,option=value; see `starr strategies`.")] = "starr"

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``starr.generate``; strategy and cache are checked here, before a model is loaded."""
        import starr

        return {"strategy": starr.strategy(self.strategy)} | super().arguments()
