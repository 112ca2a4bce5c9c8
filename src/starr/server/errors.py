"""The server's own errors, and the form in which the official client reads any error.

Nothing heavy is imported here: Ray's proxy needs the form, too.
"""

from __future__ import annotations

from typing import Any

from starr.errors import InputError, StarrError

TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 503: "service_unavailable_error"}
CODES = {401: "invalid_api_key", 404: "not_found", 408: "timeout", 413: "body_too_large", 429: "queue_full"}


class Missing(InputError):
    """There is no model or page of that name."""

    status = 404


class Late(StarrError):
    """The request's time has run out."""

    status = 408  # like a body that comes too slowly: the client asked for too much in too little time


class Full(StarrError):
    """The queue has no room."""

    status = 429

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message, hint="Try again later.")
        self.retry_after = retry_after


class Gone(StarrError):
    """The client closed the connection."""

    status = 499


class Unavailable(StarrError):
    """The server answers, but it does not decode: no model yet, no room, shutting down, or an engine is dead."""

    status = 503


def error_body(error: StarrError) -> dict[str, Any]:
    """An error of ours as the official client reads it."""
    return error_object(str(error), error.status, error.param, error.code)


def error_object(message: str, status: int, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """An error as the official client reads it."""
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    usual = "model_not_found" if status == 404 and param == "model" else CODES.get(status)
    return {"error": {"message": message, "type": kind, "param": param, "code": code or usual}}


def rename_field(error: InputError, names: dict[str, str]) -> InputError:
    """The error under the name of the field that the client sent, where an option came under another name."""
    sent = names.get(error.param or "")
    return (
        error if sent in (None, error.param) else type(error)(f"{sent}: {error.message}", hint=error.hint, param=sent)
    )
