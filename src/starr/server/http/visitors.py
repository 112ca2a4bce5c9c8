"""Who may ask: Host, Origin and Content-Type, decided from the headers alone.

Without a key on a loopback address the browser of the same machine is the danger: a page from elsewhere can point its
own name at 127.0.0.1 (DNS rebinding), and any page can send a form. So only the names of this machine are taken as
Host, no foreign page may call, and a body must say that it is JSON, which a form cannot.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Scope

from starr.server.settings import Settings, is_loopback

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def refusal(scope: Scope, settings: Settings) -> tuple[int, str] | None:
    """The status and the message for a request that must not reach the application; None lets it through."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    if settings.api_key is None and is_loopback(settings.host):
        host = headers.get("host", "")
        if name_of(host) not in (*LOCAL_NAMES, *(name.lower() for name in settings.allow_host)):
            return 403, f"The Host header {host[:100]!r} is not a name of this server. Add it with --allow-host."
        if foreign(headers, settings):
            origin = headers["origin"][:100]
            return 403, f"Pages from {origin!r} may not call this server. Add the origin with --cors."
    if scope["method"] in ("POST", "PUT", "PATCH") and not says_json(headers):
        return 415, "The header Content-Type must be application/json."
    return None


def name_of(host: str) -> str:
    """The name in a Host header, without its port and in lower case."""
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdecimal() else host.strip().lower()


def foreign(headers: Mapping[str, str], settings: Settings) -> bool:
    """Whether the request comes from a page of another origin that is not allowed."""
    origin = headers.get("origin")
    if origin is None or origin in settings.cors or "*" in settings.cors:
        return False
    return origin.lower().partition("://")[2] != headers.get("host", "").lower()


def says_json(headers: Mapping[str, str]) -> bool:
    """Whether a request declares its body to be JSON."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json"
