"""The page at ``/docs``: every endpoint and its fields, from the schema, as one page that works offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

STYLE = """
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code{font:13px ui-monospace,monospace}table{border-collapse:collapse;display:block;overflow-x:auto}
td,th{border:1px solid #8886;padding:.2rem .6rem;text-align:left;vertical-align:top}
h2{margin-top:2rem}h2 code{font-size:18px}
"""


def reference_page(schema: Mapping[str, Any]) -> str:
    """HTML of an OpenAPI schema."""
    parts = [
        section(path, method, work, schema) for path, work in schema["paths"].items() for method, work in work.items()
    ]
    body = "".join(parts)
    form = "<a href='/openapi.json'>openapi.json</a>"
    about = f"OpenAI's fields, and our own in addition. For machines: {form}."
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>STaRR: the API</title><style>{STYLE}</style><h1>The API</h1><p>{about}</p>{body}</html>"
    )


def section(path: str, method: str, work: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """One endpoint."""
    fields = "".join(rows(work, schema))
    table = f"<table><tr><th>field<th>type<th>meaning{fields}</table>" if fields else ""
    codes = ", ".join(f"{code}: {found['description']}" for code, found in work["responses"].items() if code != "200")
    return f"<h2><code>{method.upper()} {escape(path)}</code></h2>{table}<p><small>{escape(codes)}</small></p>"


def rows(work: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    """The fields of an endpoint's body."""
    body = work.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    name = body.get("$ref", "").rpartition("/")[2]
    found = schema.get("components", {}).get("schemas", {}).get(name, {})
    for field, about in found.get("properties", {}).items():
        need = " (required)" if field in found.get("required", ()) else ""
        meaning = about.get("description", "")
        yield f"<tr><td><code>{escape(field)}</code>{need}<td>{escape(kind(about))}<td>{escape(meaning)}"


def kind(about: Mapping[str, Any]) -> str:
    """A field's type in words."""
    if "anyOf" in about:
        return " or ".join(kind(each) for each in about["anyOf"] if each.get("type") != "null")
    if "$ref" in about:
        return str(about["$ref"].rpartition("/")[2])
    return f"array of {kind(about.get('items', {}))}" if about.get("type") == "array" else str(about.get("type", "any"))
