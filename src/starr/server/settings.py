"""How a server runs; every field is a flag of ``starr serve``."""

from __future__ import annotations

from dataclasses import dataclass


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
    cors: tuple[str, ...] = ()  # origins whose pages may call
