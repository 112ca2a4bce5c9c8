"""``starr serve``: the server, behind the extra [serve]."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
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


def add(app: typer.Typer) -> None:
    verb(app, "serve", Options, serve)


def serve(options: Options) -> None:
    """Serve an OpenAI-compatible API.

    Requests join and leave one batch between steps, each with its own strategy and cache.
    """
    absent = [name for name in ("fastapi", "uvicorn", "prometheus_client") if importlib.util.find_spec(name) is None]
    if absent:
        raise InputError(f"The server needs {', '.join(absent)}.", hint="pip install 'starr-dlm[serve]'")
    from starr.server.app import serve as start

    start(options)
