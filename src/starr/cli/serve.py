"""``starr serve``: the server, behind the extra [serve]."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, fields
from typing import Annotated

import typer

from starr.cli.flags import Place
from starr.cli.verb import verb
from starr.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Options(Place):
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000
    api_key: Annotated[
        str | None, typer.Option(help="Key that clients must send.", envvar="STARR_API_KEY", show_default="none")
    ] = None
    engines: Annotated[
        int | None, typer.Option(help="Engine threads.", min=1, show_default="one per core on a CPU, else one")
    ] = None
    max_rows: Annotated[int, typer.Option(help="Most answers in one forward.", min=1)] = 16
    max_positions: Annotated[
        int | None, typer.Option(help="Most positions in one forward.", min=1, show_default="by the device")
    ] = None
    max_queue: Annotated[int, typer.Option(help="Most answers that wait; more are refused with 429.", min=1)] = 256
    max_body: Annotated[int, typer.Option(help="Most bytes of a request.", min=1)] = 1 << 20
    body_timeout: Annotated[float, typer.Option(help="Seconds to send a request in.", min=0.1)] = 30.0
    timeout: Annotated[float, typer.Option(help="Seconds until a request is given up.", min=0.1)] = 600.0
    grace: Annotated[float, typer.Option(help="Seconds that running requests get at shutdown.", min=0)] = 10.0
    cors: Annotated[
        list[str] | None, typer.Option(help="An origin whose pages may call; repeatable.", show_default="none")
    ] = None


def add(app: typer.Typer) -> None:
    verb(app, "serve", Options, serve)


def serve(options: Options) -> None:
    """Serve an OpenAI-compatible API.

    Requests join and leave one batch between steps, each with its own strategy and cache.
    """
    absent = [name for name in ("fastapi", "uvicorn", "prometheus_client") if importlib.util.find_spec(name) is None]
    if absent:
        raise InputError(f"The server needs {', '.join(absent)}.", hint="pip install 'starr-dlm[serve]'")
    from starr.server.settings import Settings
    from starr.server.start import serve as start

    shared = [f.name for f in fields(Settings) if hasattr(options, f.name)]
    given = {name: getattr(options, name) for name in shared} | {"cors": tuple(options.cors or ())}
    start(options.load, Settings(**given), quiet=options.quiet)
