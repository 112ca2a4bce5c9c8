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

from starr.decode.trace import begin, check_trace
from starr.errors import InputError
from starr.viewer.compare import differences
from starr.viewer.frames import Trace
from starr.viewer.pack import encode, pack
from starr.viewer.words import ABOVE, BELOW, LANES, STATES, ZERO

MOST_LANES, MOST_PROMPT = 4, 40
SCRIPTS = (
    "unpack", "frames", "draw", "text", "about", "map", "curves", "life", "difference", "export", "controls", "link",
    "main",
)  # fmt: skip


def page(traces: Sequence[dict[str, Any]], title: str = "STaRR") -> str:
    """The page for one to four traces of format 1, one lane each."""
    if not 1 <= len(traces) <= MOST_LANES:
        raise InputError(f"A page shows 1 to {MOST_LANES} traces, not {len(traces)}.", hint="Give fewer or more.")
    lanes: list[Trace] = [check_trace(trace, f"trace {index + 1}") for index, trace in enumerate(traces)]
    data = encode({"lanes": [pack(trace) for trace in lanes], "differences": differences(lanes)})
    style, script = style_text(), script_text()
    parts = {
        "SCRIPT_HASH": fingerprint(script), "STYLE_HASH": fingerprint(style),
        "TITLE": html.escape(headline(title, lanes)), "DATA": data, "STYLE": style, "SCRIPT": script,
    }  # fmt: skip
    return re.sub(r"@([A-Z_]+)@", lambda place: parts[place[1]], source("page.html"))


def headline(title: str, lanes: Sequence[Trace]) -> str:
    """The title and the beginning of the prompt that the lanes share, which tells one page from the next."""
    prompts = {" ".join((lane.get("prompt") or "").split()) for lane in lanes}
    prompt = prompts.pop() if len(prompts) == 1 else ""
    return f"{title} · {begin(prompt, MOST_PROMPT)}" if prompt else title


def source(name: str) -> str:
    """A file of the page."""
    return files("starr.viewer").joinpath("page", name).read_text(encoding="utf-8")


def script_text() -> str:
    """All scripts as one: a shared scope, no build step."""
    meanings = {look.word: look.meaning for look in STATES}
    body = "\n".join(source(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\nconst MEANINGS = {json.dumps(meanings)};\n{body}\n}})();\n'


def style_text() -> str:
    """The style sheet, with the colours of ``words`` as variables of both themes."""
    themes = []
    for place, selector in enumerate((":root", '[data-theme="dark"]')):
        colours = {look.word: (look.light, look.dark)[place] for look in STATES}
        colours |= {"above": ABOVE[place], "below": BELOW[place], "zero": ZERO[place]}
        colours |= {f"lane{index}": pair[place] for index, pair in enumerate(LANES)}
        themes.append(f"{selector} {{ {' '.join(f'--{name}: {colour};' for name, colour in colours.items())} }}")
    return "\n".join([*themes, source("page.css")])


def fingerprint(text: str) -> str:
    """What the page's security policy lets run: exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
