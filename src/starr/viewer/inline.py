"""The page inside another page: a notebook's output."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

HEIGHT = 620


def show_inline(traces: Sequence[dict[str, Any]], title: str = "Every step of the run") -> str:
    """Write an iframe with the whole page of the viewer; its scripts run there and reach nothing outside."""
    from starr.viewer.html import build_page

    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts allow-downloads" width="100%" height="{HEIGHT}" '
        f'style="border:1px solid #8886;border-radius:6px" srcdoc="{escape(build_page(traces, title))}"></iframe>'
    )
