"""One HTML file that shows traces: opened from disk, no server, no network, nothing but what is in it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from starr.decode.trace import check_trace
from starr.errors import InputError
from starr.viewer.compare import compare_lanes
from starr.viewer.frames import Trace
from starr.viewer.pack import encode, pack
from starr.viewer.words import ABOVE, BELOW, LANES, STATES, ZERO

MOST_LANES = 4
SCRIPTS = (
    "unpack", "frames", "draw", "text", "about", "map", "curves", "life", "difference", "export", "controls", "link",
    "main",
)  # fmt: skip


def build_page(traces: Sequence[dict[str, Any]], title: str = "STaRR") -> str:
    """Build the page for one to four traces of format 1, one lane each."""
    if not 1 <= len(traces) <= MOST_LANES:
        raise InputError(f"A page shows 1 to {MOST_LANES} traces, not {len(traces)}.", hint="Give fewer or more.")
    lanes: list[Trace] = [check_trace(trace, f"trace {index + 1}") for index, trace in enumerate(traces)]
    data = encode({"lanes": [pack(trace) for trace in lanes], "differences": compare_lanes(lanes)})
    style, script = join_styles(), join_scripts()
    parts = {
        "SCRIPT_HASH": hash_text(script), "STYLE_HASH": hash_text(style),
        "TITLE": html.escape(write_title(title, lanes)), "DATA": data, "STYLE": style, "SCRIPT": script,
    }  # fmt: skip
    return re.sub(r"@([A-Z_]+)@", lambda match: parts[match[1]], read_source("page.html"))


def write_title(title: str, lanes: Sequence[Trace]) -> str:
    """Write the title and the first line of the prompt that the lanes share, whole, so that pages differ."""
    prompts = {(lane.get("prompt") or "").strip().partition("\n")[0].strip() for lane in lanes}
    prompt = prompts.pop() if len(prompts) == 1 else ""
    return f"{title} · {prompt}" if prompt else title


def read_source(name: str) -> str:
    """Read a file of the page."""
    return files("starr.viewer").joinpath("page", name).read_text(encoding="utf-8")


def join_scripts() -> str:
    """Join all scripts: a shared scope, no build step."""
    meanings = {look.word: look.meaning for look in STATES}
    body = "\n".join(read_source(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\nconst MEANINGS = {json.dumps(meanings)};\n{body}\n}})();\n'


def join_styles() -> str:
    """Join the style sheet with the colours of ``words`` as variables of both themes."""
    themes = []
    for theme, selector in enumerate((":root", '[data-theme="dark"]')):
        colours = {look.word: (look.light, look.dark)[theme] for look in STATES}
        colours |= {"above": ABOVE[theme], "below": BELOW[theme], "zero": ZERO[theme]}
        colours |= {f"lane{index}": pair[theme] for index, pair in enumerate(LANES)}
        themes.append(f"{selector} {{ {' '.join(f'--{name}: {colour};' for name, colour in colours.items())} }}")
    return "\n".join([*themes, read_source("page.css")])


def hash_text(text: str) -> str:
    """Hash a text, so that the page's security policy lets exactly this text run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
