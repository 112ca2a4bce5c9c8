"""The part that runs in Ray Serve's proxy, in front of the replicas.

A replica that dies takes its answers with it, and one that goes or is unwell refuses with 503. An answer that has not
begun is then asked for again, elsewhere if possible: decoding has a seed and no side effects. A stream that has begun
ends with an error event, as the official client expects. What Ray itself says (no replica, no room) leaves in OpenAI's
form.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from starr.server.errors import error_object

IMPORT_PATH = "starr.cluster.front:middlewares"
VARIABLE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"  # where Ray Serve looks for it, in the proxy's environment
TRIES = 3
PAUSE = 0.2  # seconds before the next try
KEPT = 1 << 20  # bytes of a body; a larger one is not asked again
RAYS_OWN = "/-/"  # paths that Ray Serve answers itself
WORDS = {
    408: "The request was not answered in time.",
    429: "All replicas are full. Try again later.",
    503: "No replica is accepting requests. Try again later.",
}


def middlewares() -> list[Middleware]:
    """For Ray Serve."""
    return [Middleware(Front)]


class Front:
    """Plain ASGI, so that streams pass."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(RAYS_OWN):
            await self.app(scope, receive, send)
            return
        question, answer = KeptRequest(receive), ProxiedAnswer(send)
        for tries in range(TRIES):
            await asyncio.sleep(PAUSE * tries)
            await self.app(scope, question.again(), answer)
            if answer.settled or question.over:
                break
        if not question.left:
            await answer.end(scope, receive)


class KeptRequest:
    """A request that can be read again."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.messages: list[Message] = []
        self.left = False  # the client
        self.size = 0

    @property
    def over(self) -> bool:
        """Whether it cannot be sent again."""
        return self.left or self.size > KEPT

    def again(self) -> Receive:
        """What was read already, then the rest."""
        known = iter(list(self.messages))

        async def following() -> Message:
            for message in known:
                return message
            message = await self.receive()
            if message["type"] == "http.disconnect":
                self.left = True
                return message
            self.size += len(message.get("body", b""))
            self.messages = [] if self.size > KEPT else [*self.messages, message]
            return message

        return following


class ProxiedAnswer:
    """What a replica sends. Its head waits for the first part, so that a replica that dies in between sends nothing."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.head: Message | None = None
        self.unwilling: list[Message] = []  # a whole refusal with 503, kept in case that nobody else answers
        self.begun = self.whole = False
        self.refused = 0  # Ray's own status

    @property
    def settled(self) -> bool:
        """Whether no other replica is to be tried."""
        return self.begun or self.refused > 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            own = message["status"] >= 400 and kind_of(message).startswith("text/plain")  # ours are JSON
            self.head, self.refused = message, message["status"] if own else 0
            self.unwilling = [message] if message["status"] == 503 and not own else []
        elif self.unwilling:
            self.unwilling.append(message)
        elif message["type"] == "http.response.body" and self.head is not None and not self.refused:
            if not self.begun:
                self.begun = True
                await self.send(self.head)
            self.whole = not message.get("more_body", False)
            await self.send(message)

    async def end(self, scope: Scope, receive: Receive) -> None:
        """End an unfinished answer: with an error as an event, or as the whole answer."""
        if self.begun and self.head is not None:
            if not self.whole and kind_of(self.head).startswith("text/event-stream"):
                error = error_object("The replica died. Send the request again.", 503)
                last = f"data: {json.dumps(error)}\n\n".encode()
                await self.send({"type": "http.response.body", "body": last, "more_body": False})
            return
        for message in self.unwilling:
            await self.send(message)
        if self.unwilling:
            return
        status = self.refused if self.refused in WORDS else 503
        error = error_object(WORDS[status], status)
        await JSONResponse(error, status, {"Retry-After": "1"})(scope, receive, self.send)


def kind_of(head: Message) -> str:
    """The content type of an answer."""
    headers: Iterable[tuple[bytes, bytes]] = head.get("headers", [])
    return next((bytes(value).decode("latin-1") for name, value in headers if bytes(name) == b"content-type"), "")
