"""Errors as the official client reads them. Imports nothing heavy: a proxy needs them too."""

from __future__ import annotations

from typing import Any

from starr.errors import StarrError

TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 503: "service_unavailable_error"}


def error_body(error: StarrError) -> dict[str, Any]:
    """An error of ours as the official client reads it."""
    return error_object(str(error), error.status, error.param, error.code)


def error_object(message: str, status: int, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """An error as the official client reads it."""
    kind = TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    codes = {401: "invalid_api_key", 404: "model_not_found" if param == "model" else "not_found"}
    codes |= {408: "timeout", 413: "body_too_large", 429: "queue_full"}
    return {"error": {"message": message, "type": kind, "param": param, "code": code or codes.get(status)}}
