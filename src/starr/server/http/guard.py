"""What happens around every request: its size and pace, the key, the access log. Plain ASGI, so that streams pass."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from time import perf_counter, time
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from starr.server.http.errors import error_object
from starr.server.http.visitors import refusal
from starr.server.settings import Settings

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
        refused = refusal(scope, self.settings)
        if refused is not None:
            await JSONResponse(error_object(refused[1], refused[0]), refused[0])(scope, receive, send)
            return
        if not self.allowed(scope):
            wrong = error_object("The API key is missing or wrong.", 401)
            await JSONResponse(wrong, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self.settings.body_timeout):
                body = await self.read(scope, receive)
        except TimeoutError:
            late = f"The body did not arrive within {self.settings.body_timeout:g} seconds."
            await JSONResponse(error_object(late, 408), 408, {"Connection": "close"})(scope, receive, send)
            return
        if isinstance(body, int):
            large = f"The body has {body} bytes or more; at most {self.settings.max_body} are allowed."
            await JSONResponse(error_object(large, 413), 413, {"Connection": "close"})(scope, receive, send)
        elif body is not None:
            await self.app(scope, replaying(body, receive), send)

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


def replaying(body: bytes, receive: Receive) -> Receive:
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
