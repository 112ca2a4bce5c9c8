"""The page at ``/``: send a prompt and watch the canvas fill."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def live_page() -> str:
    """One file, no network beyond this server."""
    return files("starr.server").joinpath("live.html").read_text(encoding="utf-8")
