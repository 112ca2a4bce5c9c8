"""``starr serve``: the server, behind the extra [serve]."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import ModelFlags
from starr.cli.ray import ReplicaFlags
from starr.cli.report import note
from starr.cli.verb import verb
from starr.optional import need

if TYPE_CHECKING:
    from starr.cluster.replica import Replicas
    from starr.model.load import Model
    from starr.server.settings import Settings


@dataclass(frozen=True, kw_only=True)
class ServeOptions(ReplicaFlags, ModelFlags):
    """The flags of ``starr serve``."""

    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000
    strategy: Annotated[
        str | None, typer.Option(help="Strategy for requests that name none.", show_default="the model's")
    ] = None
    cache: Annotated[
        str | None, typer.Option(help="Cache for requests that name none.", show_default="the model's")
    ] = None
    block_length: Annotated[
        int | None,
        typer.Option(
            help="Block length for requests that name none; 0 is the whole canvas.",
            min=0,
            show_default="the model's own, or 32, so that text streams",
        ),
    ] = None
    max_tokens: Annotated[int, typer.Option(help="Canvas length for requests that name none.", min=1)] = 128
    served_model_name: Annotated[
        str | None, typer.Option(help="The name by which clients ask for the model.", show_default="its own name")
    ] = None
    api_key: Annotated[
        str | None, typer.Option(help="Key that clients must send.", envvar="STARR_API_KEY", show_default="none")
    ] = None
    engines: Annotated[
        int | None, typer.Option(help="Engine threads.", min=1, show_default="one per core on a CPU, else one")
    ] = None
    max_rows: Annotated[int, typer.Option(help="At most this many answers in one forward.", min=1)] = 16
    max_positions: Annotated[
        int | None,
        typer.Option(help="At most this many positions in one forward.", min=1, show_default="depends on the device"),
    ] = None
    max_queue: Annotated[
        int, typer.Option(help="At most this many waiting answers; more are refused with 429.", min=1)
    ] = 256
    max_body: Annotated[int, typer.Option(help="Largest request, in bytes.", min=1)] = 1 << 20
    body_timeout: Annotated[float, typer.Option(help="Seconds that a client has to send a request.", min=0.1)] = 30.0
    timeout: Annotated[float, typer.Option(help="Seconds until a request times out.", min=0.1)] = 600.0
    grace: Annotated[float, typer.Option(help="Seconds that running requests get at shutdown.", min=0)] = 10.0
    header_timeout: Annotated[float, typer.Option(help="Seconds that a client has to send the headers.", min=0.1)] = (
        10.0
    )
    max_connections: Annotated[
        int | None,
        typer.Option(help="At most this many open connections.", min=1, show_default="half of the open-file limit"),
    ] = None
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A Host name to accept as this server's; repeatable.", show_default="local")
    ] = None
    trust_proxy: Annotated[bool, typer.Option("--trust-proxy", help="Trust X-Forwarded-For.")] = False
    stuck: Annotated[float, typer.Option(help="Seconds of one step after which /health fails.", min=1)] = 120.0
    cors: Annotated[
        list[str] | None, typer.Option(help="An origin whose pages may call the API; repeatable.", show_default="none")
    ] = None

    def decoding(self) -> dict[str, Any]:
        """Options of decoding for requests that name none; text forms are checked here, before a load."""
        import starr

        found: dict[str, Any] = {"max_tokens": self.max_tokens}
        if self.strategy is not None:
            found["strategy"] = starr.strategy(self.strategy)
        return found if self.cache is None else found | {"cache": starr.cache(self.cache)}

    def say(self, text: str) -> None:
        """A line for people; among a server's log lines it is JSON, as they are."""
        logging.getLogger("starr.server").info(text)

    def served(self) -> Model:
        """The model under the name that clients use."""
        model = self.load()
        return model if self.served_model_name is None else replace(model, name=self.served_model_name)


def add(app: typer.Typer) -> None:
    """Add ``starr serve``."""
    verb(app, "serve", ServeOptions, serve)


def serve(options: ServeOptions) -> None:
    """Serve an OpenAI-compatible API.

    Requests join and leave one batch between steps, each with its own strategy and cache.
    """
    need("serve", "The server")
    from starr.server.settings import Settings
    from starr.server.start import serve as start

    replicas = options.numbers()
    shared = [f.name for f in fields(Settings) if hasattr(options, f.name)]
    given = {name: getattr(options, name) for name in shared} | {"cors": tuple(options.cors or ())}
    settings = Settings(**given | {"allow_host": tuple(options.allow_host or ()), "defaults": options.decoding()})
    if replicas is None:
        start(options.served, settings, quiet=options.quiet)
    else:
        on_replicas(options, replicas, settings)


def on_replicas(options: ServeOptions, replicas: Replicas, settings: Settings) -> None:
    """Serve with Ray, or write the file that tells Ray how."""
    from starr.cluster.serve import Served, serve_on, write_config
    from starr.cluster.worker import ModelSource
    from starr.named import text_form

    plain = {n: v if v is None or isinstance(v, int) else text_form(v) for n, v in settings.defaults.items()}
    source = ModelSource(options.model, options.device, options.dtype)
    served = Served(source, options.served_model_name, replicas, replace(settings, defaults=plain))
    if options.write_config is not None:
        write_config(options.write_config, served)
        note(f"wrote {options.write_config}", options.quiet)
    else:
        serve_on(options.ray or "", served, quiet=options.quiet)
