"""Listen until told to stop."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import uvicorn

from starr.errors import StarrError, WorkError
from starr.model.load import Model
from starr.server.connections import BACKLOG, listen, protocol, quieter
from starr.server.http.app import create_app
from starr.server.log import ADDRESS, log_to_stderr
from starr.server.settings import Settings, is_loopback

log = logging.getLogger("starr.server")


def serve(load: Callable[[], Model], settings: Settings, *, quiet: bool = False) -> None:
    """Serve until SIGINT or SIGTERM; raises when the model cannot be loaded or the address cannot be used."""
    lines = log_to_stderr(quiet)
    warn_if_open(settings)
    address = listen(settings)  # before the model is loaded: nothing is lost if the port is taken
    server = server_of(load, settings)
    service = server.config.app.state.service  # type: ignore[union-attr]
    try:
        server.run(sockets=[address])
    except SystemExit:
        raise WorkError(f"Cannot listen on {settings.host}:{settings.port}.") from None
    finally:
        address.close()
        lines.drain()
    if isinstance(service.failed, StarrError):
        raise service.failed
    if service.failed is not None:
        raise WorkError(f"The model cannot be loaded: {service.failed}.")


def server_of(load: Callable[[], Model], settings: Settings) -> Server:
    """A server that is not running yet."""
    app = create_app(load, settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=protocol(settings),
        log_config=None,
        access_log=False,
        proxy_headers=settings.trust_proxy,
        forwarded_allow_ips="*" if settings.trust_proxy else None,
        backlog=BACKLOG,
        timeout_graceful_shutdown=round(settings.grace) + 5,
        server_header=False,
    )
    server = Server(config)
    app.state.service.on_failure = lambda: setattr(server, "should_exit", True)
    return server


class Server(uvicorn.Server):
    """Says where it listens; tells the engine of a shutdown first, so that running answers end in the grace time."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Quieten the event loop's own errors, then listen."""
        quieter(asyncio.get_running_loop())
        await super().startup(sockets)
        if self.started:
            told = "listening on %s (/ to watch it write, /v1 for clients, /docs for the API)"
            logging.getLogger(ADDRESS).info(told, self.address())

    def address(self) -> str:
        """Where a browser finds it."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop taking requests while the engine threads finish theirs."""
        ending = asyncio.ensure_future(asyncio.to_thread(self.config.app.state.service.end))  # type: ignore[union-attr]
        await super().shutdown(sockets)
        await ending


def warn_if_open(settings: Settings) -> None:
    """Log a warning where anybody could use the server."""
    if settings.api_key is None and not is_loopback(settings.host):
        log.warning("listening on %s without a key: anybody who can reach it can use it (see --api-key)", settings.host)
