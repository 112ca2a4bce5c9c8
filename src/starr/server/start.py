"""Listen until told to stop. The port is bound before anything loads; connections are counted and have deadlines."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from starr.errors import StarrError, WorkError, counted
from starr.server.log import ADDRESS, log_to_stderr
from starr.server.settings import PING, Settings, is_loopback

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.server.http.service import Service

MOST = 1000  # connections
BACKLOG = 128
LOOK = 0.1  # seconds between two looks at a client that has ended its side
log = logging.getLogger("starr.server")


def serve(load: Callable[[], Model], settings: Settings, *, quiet: bool = False) -> None:
    """Serve until SIGINT or SIGTERM; raises when the model cannot be loaded or the address cannot be used."""
    lines = log_to_stderr(quiet)
    warn_if_open(settings)
    address = listen(settings)  # before the model is loaded: nothing is lost if the port is taken
    server = build_server(load, settings)
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


def build_server(load: Callable[[], Model], settings: Settings) -> Server:
    """A server that is not running yet."""
    from starr.server.http.app import create_app  # late: whoever only listens needs no torch

    app = create_app(load, settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=build_protocol(settings),
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
        quieten(asyncio.get_running_loop())
        await super().startup(sockets)
        if self.started:
            told = "listening on %s (/ to watch it write, /v1 for clients, /docs for the API)"
            logging.getLogger(ADDRESS).info(told, self.address())

    def address(self) -> str:
        """Where a browser finds it."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop taking requests while the engine threads finish theirs; a second Ctrl-C ends them as they are."""
        service: Service = self.config.app.state.service  # type: ignore[union-attr]
        if rows := service.pending:
            told = "waiting up to %g seconds for %s to finish; press Ctrl-C again to end now"
            logging.getLogger(ADDRESS).warning(told, service.settings.grace, counted(rows, "answer"))
        ending = asyncio.ensure_future(asyncio.to_thread(service.end))
        await super().shutdown(sockets)
        if self.force_exit:
            service.hurry()
        await ending
        if self.force_exit and self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=1.0)  # to send what is settled


def warn_if_open(settings: Settings) -> None:
    """Log a warning where anybody could use the server."""
    if settings.api_key is None and not is_loopback(settings.host):
        log.warning("listening on %s without a key: anybody who can reach it can use it (see --api-key)", settings.host)


def bound_connections(settings: Settings) -> int:
    """As many as asked for, at most half of the files that this process may open."""
    most = settings.max_connections or MOST
    with suppress(ImportError):
        import resource

        most = min(most, max(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))
    return most


def build_protocol(settings: Settings) -> type[H11Protocol]:
    """The HTTP protocol of one server: closes connections beyond the cap, and those whose headers do not come."""
    most, patience = bound_connections(settings), settings.header_timeout

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

        def eof_received(self) -> Any:  # true keeps the connection
            """A client that has ended its own side still gets its answer; one that is gone answers with a reset."""
            cycle = self.cycle
            if cycle is None or cycle.response_complete or cycle.more_body:
                return False
            cycle.keep_alive = False
            if not cycle.response_started and cycle.scope["http_version"] == "1.1":
                self.write(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
            elif cycle.response_started and cycle.scope["state"].get("streams"):
                self.write(h11.Data(data=PING))
            self.watch_reset()
            return True

        def write(self, event: h11.Event) -> None:
            self.transport.write(self.conn.send(event) or b"")

        def watch_reset(self) -> None:
            if self.cycle.response_complete or self.transport.is_closing():
                return
            if self.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.transport.abort()
            else:
                self.loop.call_later(LOOK, self.watch_reset)

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


def quieten(loop: asyncio.AbstractEventLoop) -> None:
    """Complaints of the accept loop, which come in thousands, become one line in ten seconds."""
    last = [-10.0]

    def handle(_: object, context: dict[str, Any]) -> None:
        if "accept" in str(context.get("message")):
            if loop.time() - last[0] < 10:
                return
            last[0] = loop.time()
        log.error("%s: %r", context.get("message"), context.get("exception"))

    loop.set_exception_handler(handle)
