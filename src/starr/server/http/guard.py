"""What happens around every request: who may ask, its size and pace, the access log. Plain ASGI, so that streams pass.

Without a key on a loopback address the browser of the same machine is the danger: a page from elsewhere can point its
own name at 127.0.0.1 (DNS rebinding), and any page can send a form. So only the names of this machine are taken as
Host, no foreign page may call, and a body must say that it is JSON, which a form cannot.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Mapping
from time import perf_counter, time
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from starr.server.errors import error_object
from starr.server.settings import Settings, is_loopback

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
OPEN_PATHS = ("/", "/docs", "/health", "/health/ready", "/version")
access = logging.getLogger("starr.access")


class Guard:
    """Refuses what must not reach the application, and writes one line per request, without any of its text."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        entry: dict[str, Any] = {"status": 499, "sent": 0}
        scope.setdefault("state", {})["log"] = entry

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
            entry["sent"] += len(message.get("body", b""))
            await send(message)

        began = perf_counter()
        try:
            await self.admit(scope, receive, watched)
        finally:
            write(scope, entry, perf_counter() - began)

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key, read the whole body within its bounds, and hand the request on."""

        async def refuse(status: int, message: str, **headers: str) -> None:
            await JSONResponse(error_object(message, status), status, headers)(scope, receive, send)

        refused = check_headers(scope, self.settings)
        if refused is not None:
            return await refuse(*refused)
        if not self.allowed(scope):
            return await refuse(401, "The API key is missing or wrong.", **{"WWW-Authenticate": "Bearer"})
        try:
            async with asyncio.timeout(self.settings.body_timeout):
                body = await self.read(scope, receive)
        except TimeoutError:
            late = f"The body did not arrive within {self.settings.body_timeout:g} seconds."
            return await refuse(408, late, Connection="close")
        if isinstance(body, int):
            large = f"The body has {body} bytes or more; at most {self.settings.max_body} are allowed."
            return await refuse(413, large, Connection="close")
        if body is not None:
            asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope  # uvicorn drops the body
            await self.app(asked, replay(body, receive), send)
        return None

    def allowed(self, scope: Scope) -> bool:
        """Whether the key fits, compared in constant time."""
        preflight = scope["method"] == "OPTIONS" and self.settings.cors
        if self.settings.api_key is None or scope["path"] in OPEN_PATHS or preflight:
            return True
        scheme, _, key = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(key.strip(), self.settings.api_key.encode())

    async def read(self, scope: Scope, receive: Receive) -> bytes | int | None:
        """The whole body; its size if that is too large; None if the client left."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self.settings.max_body:
            return int(declared)
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.settings.max_body:
                return size
            if not message.get("more_body", False):
                return b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then whatever follows: the message that the client left."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def write(scope: Scope, entry: dict[str, Any], seconds: float) -> None:
    """One line of the access log."""
    client = scope.get("client")
    line = {"time": round(time(), 3), "client": client[0] if client else None, "method": scope["method"]}
    access.info(json.dumps(line | {"path": scope["path"], "seconds": round(seconds, 4)} | entry))


def check_headers(scope: Scope, settings: Settings) -> tuple[int, str] | None:
    """The status and the message for a request that must not reach the application; None lets it through."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    if settings.api_key is None and is_loopback(settings.host):
        host = headers.get("host", "")
        if read_host(host) not in (*LOCAL_NAMES, *(name.lower() for name in settings.allow_host)):
            return 403, f"The Host header {host[:100]!r} is not a name of this server. Add it with --allow-host."
        if is_foreign(headers, settings):
            origin = headers["origin"][:100]
            return 403, f"Pages from {origin!r} may not call this server. Add the origin with --cors."
    if scope["method"] in ("POST", "PUT", "PATCH") and not says_json(headers):
        return 415, "The header Content-Type must be application/json."
    return None


def read_host(host: str) -> str:
    """The name in a Host header, without its port and in lower case."""
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdecimal() else host.strip().lower()


def is_foreign(headers: Mapping[str, str], settings: Settings) -> bool:
    """Whether the request comes from a page of another origin that is not allowed."""
    origin = headers.get("origin")
    if origin is None or origin in settings.cors or "*" in settings.cors:
        return False
    scheme, _, name = origin.lower().partition("://")
    return scheme not in ("http", "https") or name != headers.get("host", "").lower()


def says_json(headers: Mapping[str, str]) -> bool:
    """Whether a request declares its body to be JSON."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
