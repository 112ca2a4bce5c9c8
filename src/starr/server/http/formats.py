"""The form that an answer must have, in the words of OpenAI and vLLM, as options of decoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starr.errors import InputError

if TYPE_CHECKING:
    from starr.server.http.protocol import Decoding

KINDS = ("text", "json_object", "json_schema")
STRUCTURED = {"regex": "regex", "choice": "choices", "json": "json_schema", "json_object": "json_schema"}


def form_of(body: Decoding) -> dict[str, Any]:
    """``json_schema`` or ``choices``, from response_format, structured_outputs and choice; two of them are refused."""
    found = [*format_options(body.response_format), *structured_options(body.structured_outputs)]
    if body.choice is not None:
        found.append(("choices", body.choice))
    found += [(name, value) for name, value in body.given().items() if name == "regex"]
    if len(found) > 1:
        raise InputError("An answer can have only one form: response_format, regex or choice.", param="response_format")
    return dict(found)


def format_options(given: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """OpenAI's response_format."""
    kind = "text" if given is None else given.get("type")
    if kind not in KINDS:
        raise InputError(f"response_format must be of type {', '.join(KINDS)}, got {kind!r}.", param="response_format")
    if given is None or kind == "text":
        return []
    if kind == "json_object":
        return [("json_schema", "object")]
    inner = given.get("json_schema")
    if not isinstance(inner, Mapping) or not isinstance(inner.get("schema"), Mapping):
        raise InputError("response_format needs json_schema with a schema, an object.", param="response_format")
    return [("json_schema", dict(inner["schema"]))]


def structured_options(given: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """vLLM's structured_outputs: one of regex, choice, json, json_object."""
    if given is None:
        return []
    asked = {name: value for name, value in given.items() if value is not None and value is not False}
    unknown = sorted(asked.keys() - STRUCTURED.keys())
    if unknown:
        known = ", ".join(STRUCTURED)
        raise InputError(
            f"structured_outputs has no {unknown[0]!r}.", hint=f"Known: {known}.", param="structured_outputs"
        )
    return [(STRUCTURED[name], "object" if name == "json_object" else value) for name, value in asked.items()]
