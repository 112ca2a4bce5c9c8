"""Connections: a deadline for headers, a cap below the open-file limit, a port that is bound before anything loads."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from starr.errors import WorkError
from starr.server.settings import Settings

MOST = 1000
BACKLOG = 128
log = logging.getLogger("starr.server")


def most_connections(settings: Settings) -> int:
    """As many as asked for, at most half of the files that this process may open."""
    most = settings.max_connections or MOST
    with suppress(ImportError):
        import resource

        most = min(most, max(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))
    return most


def protocol(settings: Settings) -> type[H11Protocol]:
    """The HTTP protocol of one server: closes connections beyond the cap, and those whose headers do not come."""
    most, patience = most_connections(settings), settings.header_timeout

    class Bounded(H11Protocol):
        waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                self.connections.discard(self)
                transport.abort()
                return
            self.await_headers()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self.stop_waiting()  # a request is being answered; its body has a deadline of its own
            elif self.waiting is None:
                self.await_headers()

        def connection_lost(self, exc: Exception | None) -> None:
            self.stop_waiting()
            super().connection_lost(exc)

        def await_headers(self) -> None:
            self.waiting = self.loop.call_later(patience, self.give_up)

        def stop_waiting(self) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None

        def give_up(self) -> None:
            self.waiting = None
            if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
                self.transport.abort()

    return Bounded


def listen(settings: Settings) -> socket.socket:
    """A socket bound to the server's address; WorkError in one line if it cannot be."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, proto)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        hint = "The port is in use: choose another --port." if taken else f"{error.strerror or error}."
        raise WorkError(f"Cannot listen on {settings.host}:{settings.port}.", hint=hint) from None
    return made


def quieter(loop: asyncio.AbstractEventLoop) -> None:
    """Complaints of the accept loop, which come in thousands, become one line in ten seconds."""
    last = [-10.0]

    def handle(_: object, context: dict[str, Any]) -> None:
        if "accept" in str(context.get("message")):
            if loop.time() - last[0] < 10:
                return
            last[0] = loop.time()
        log.error("%s: %r", context.get("message"), context.get("exception"))

    loop.set_exception_handler(handle)
