"""How a server runs; every field is a flag of ``starr serve``."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starr.errors import InputError

STREAMED = 32  # positions of a block, so that the text of a strategy that revokes comes block by block
PING = b": ping\n\n"  # a line of a stream that says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Bounds and addresses. A row is one answer being decoded; ``n`` answers are ``n`` rows."""

    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str | None = None
    engines: int | None = None  # engine threads; None: by the device
    max_rows: int = 16  # rows in one forward
    max_positions: int | None = None  # positions in one forward, unless a single row has more; None: by the device
    max_queue: int = 256  # rows that wait; more are refused with 429
    max_body: int = 1 << 20  # bytes of a request
    body_timeout: float = 30.0  # seconds to send a request in
    timeout: float = 600.0  # seconds until a request is given up
    grace: float = 10.0  # seconds that running requests get to finish at shutdown
    ping: float = 15.0  # seconds between signs of life in a stream
    frame: float = 0.05  # least seconds between two frames of ``diffusing``
    defaults: Mapping[str, Any] = field(default_factory=dict)  # options of decoding for clients that send none
    block_length: int | None = None  # for clients that send none; None: the model's own, or STREAMED
    cors: tuple[str, ...] = ()  # origins whose pages may call
    allow_host: tuple[str, ...] = ()  # names that count as this server's, besides those of the machine
    trust_proxy: bool = False  # believe X-Forwarded-For
    header_timeout: float = 10.0  # seconds to send the headers in
    max_connections: int | None = None  # open connections; never more than half of the files that may be open
    stuck: float = 120.0  # seconds after which an engine thread that does not end its step counts as stuck

    def __post_init__(self) -> None:
        if self.api_key is not None and not self.api_key.strip():
            raise InputError(
                "The API key must not be empty.", hint="Leave --api-key out to serve without one.", param="api_key"
            )


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
