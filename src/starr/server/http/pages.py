"""Pages and lists that tell what there is: the live page, traces, the reference at ``/docs``, ``/v1/strategies``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from starr.decode.caches import caches
from starr.decode.strategies import strategies
from starr.decode.trace import Trace
from starr.named import text_form
from starr.server.errors import Missing
from starr.server.http.read import MOST_TRACED

KEPT_TRACES = 8
NONE: Mapping[str, Any] = MappingProxyType({})
STYLE = """
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code{font:13px ui-monospace,monospace}table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{border:1px solid #8886;padding:.2rem .6rem;text-align:left;vertical-align:top}
h2{margin-top:2rem}h2 code{font-size:18px}
"""


def write_reference(schema: Mapping[str, Any]) -> str:
    """HTML of an OpenAPI schema: every endpoint and its fields, on one page that works offline."""
    body = "".join(
        write_section(path, method, work, schema)
        for path, methods in schema["paths"].items()
        for method, work in methods.items()
    )
    about = "OpenAI's fields, and our own in addition. For machines: <a href='/openapi.json'>openapi.json</a>."
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>STaRR: the API</title><style>{STYLE}</style><h1>The API</h1><p>{about}</p>{body}</html>"
    )


def write_section(path: str, method: str, work: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """One endpoint."""
    fields = "".join(write_fields(work, schema))
    table = f"<table><tr><th>field<th>type<th>meaning{fields}</table>" if fields else ""
    codes = ", ".join(f"{code}: {found['description']}" for code, found in work["responses"].items() if code != "200")
    return f"<h2><code>{method.upper()} {escape(path)}</code></h2>{table}<p><small>{escape(codes)}</small></p>"


def write_fields(work: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    """The fields of an endpoint's body."""
    body = work.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    found = schema.get("components", {}).get("schemas", {}).get(body.get("$ref", "").rpartition("/")[2], {})
    for field, about in found.get("properties", {}).items():
        need = " (required)" if field in found.get("required", ()) else ""
        meaning = escape(about.get("description", ""))
        yield f"<tr><td><code>{escape(field)}</code>{need}<td>{escape(name_type(about))}<td>{meaning}"


def name_type(about: Mapping[str, Any]) -> str:
    """A field's type in words."""
    if "anyOf" in about:
        return " or ".join(name_type(each) for each in about["anyOf"] if each.get("type") != "null")
    if "$ref" in about:
        return str(about["$ref"].rpartition("/")[2])
    kind = str(about.get("type", "any"))
    return f"array of {name_type(about.get('items', {}))}" if kind == "array" else kind


@cache
def read_live_page() -> str:
    """The page at ``/``: send a prompt and watch the canvas fill. One file, no network beyond this server."""
    return files("starr.server").joinpath("live.html").read_text(encoding="utf-8")


class KeptTraces:
    """The traces of the last answers, for the viewer; all together are no larger than one may be."""

    def __init__(self) -> None:
        self.traces: OrderedDict[str, Trace] = OrderedDict()

    def keep(self, id: str, trace: Trace) -> None:
        """Keep a trace; the oldest are dropped."""
        self.traces[id] = trace
        while len(self.traces) > 1 and (len(self.traces) > KEPT_TRACES or self.cells() > MOST_TRACED):
            self.traces.popitem(last=False)

    def cells(self) -> int:
        """Positions times steps of all."""
        return sum(len(step.action) for trace in self.traces.values() for step in trace.steps)

    def page(self, id: str) -> str:
        """The viewer's page for an answer."""
        from starr.viewer.html import build_page

        found = self.traces.get(id.rpartition("-")[2])
        if found is None:
            raise Missing(f"There is no trace {id!r}.", hint=f"The last {KEPT_TRACES} are kept.", param="id")
        return build_page([found.to_dict()], f"Every step of a run by {found.strategy}")


def list_members(served: Mapping[str, Any] = NONE) -> dict[str, Any]:
    """Strategies and caches with their papers, options and defaults, and what the server takes where none is named."""
    plain = {
        name: value if value is None or isinstance(value, int | str) else text_form(value)
        for name, value in served.items()
    }
    found = {"data": [describe(each) for each in strategies()], "caches": [describe(each) for each in caches()]}
    return {"object": "list", **found, "defaults": plain}


def describe(entry: Any) -> dict[str, Any]:
    """One strategy or cache as JSON."""
    about = {"id": entry.name, "object": "strategy", "paper": entry.paper, "meaning": entry.help}
    return about | {"options": [asdict(option) for option in entry.options], "presets": entry.presets}
