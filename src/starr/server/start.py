"""Listen until told to stop."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable

import uvicorn

from starr.errors import StarrError, WorkError
from starr.model.load import Model
from starr.server.app import create_app
from starr.server.guard import log_to_stderr
from starr.server.settings import Settings

log = logging.getLogger("starr.server")


def serve(load: Callable[[], Model], settings: Settings, *, quiet: bool = False) -> None:
    """Serve until SIGINT or SIGTERM; raises when the model cannot be loaded or the address cannot be used."""
    log_to_stderr(quiet)
    warn_if_open(settings)
    server = server_of(load, settings)
    service = server.config.app.state.service  # type: ignore[union-attr]
    try:
        server.run()
    except SystemExit:
        raise WorkError(f"Cannot listen on {settings.host}:{settings.port}.", hint="Is the port in use?") from None
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
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=round(settings.grace) + 5,
        server_header=False,
    )
    server = Server(config)
    app.state.service.on_failure = lambda: setattr(server, "should_exit", True)
    return server


class Server(uvicorn.Server):
    """Tells the engine of a shutdown first, so that running answers end within the grace time."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        ending = asyncio.ensure_future(asyncio.to_thread(self.config.app.state.service.end))  # type: ignore[union-attr]
        await super().shutdown(sockets)
        await ending


def warn_if_open(settings: Settings) -> None:
    if settings.api_key is None and not is_loopback(settings.host):
        log.warning("listening on %s without a key: anybody who reaches it can use it (--api-key)", settings.host)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
