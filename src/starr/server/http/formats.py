"""The form that an answer must have, in the words of OpenAI and vLLM, as options of decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starr.errors import InputError

if TYPE_CHECKING:
    from starr.server.http.protocol import Decoding

KINDS = ("text", "json_object", "json_schema")
STRUCTURED = {"regex": "regex", "choice": "choices", "json": "json_schema", "json_object": "json_schema"}


@dataclass(frozen=True, slots=True)
class AskedForm:
    """A form: the field that asked for it, and the option of decoding that it is."""

    field: str
    option: str
    value: Any


def form_of(body: Decoding) -> dict[str, Any]:
    """``regex``, ``json_schema`` or ``choices`` as an option of decoding; empty where any text will do."""
    form = asked_form(body)
    return {} if form is None else {form.option: form.value}


def asked_form(body: Decoding) -> AskedForm | None:
    """The form that a body asks for; two of them are refused."""
    found = list(forms(body))
    if len(found) > 1:
        rule = "An answer can have only one form: response_format, regex or choice."
        raise InputError(rule, hint="Leave all but one out.", param=found[1].field)
    return found[0] if found else None


def forms(body: Decoding) -> Iterator[AskedForm]:
    """Every form of a body."""
    yield from format_options(body.response_format)
    yield from structured_options(body.structured_outputs)
    if "regex" in body.given():
        yield AskedForm("regex", "regex", body.given()["regex"])
    if body.choice is not None:
        yield AskedForm("choice", "choices", body.choice)


def format_options(given: Mapping[str, Any] | None) -> Iterator[AskedForm]:
    """OpenAI's response_format."""
    field, kind = "response_format", "text" if given is None else given.get("type")
    if kind not in KINDS:
        raise InputError(f"{field} must be of type {', '.join(KINDS)}, got {kind!r}.", param=field)
    if given is None or kind == "text":
        return
    if kind == "json_object":
        yield AskedForm(field, "json_schema", "object")
        return
    inner = given.get("json_schema")
    if not isinstance(inner, Mapping) or not isinstance(inner.get("schema"), Mapping):
        raise InputError(f"{field} needs json_schema with a schema, an object.", param=field)
    yield AskedForm(field, "json_schema", dict(inner["schema"]))


def structured_options(given: Mapping[str, Any] | None) -> Iterator[AskedForm]:
    """vLLM's structured_outputs: one of regex, choice, json, json_object."""
    field = "structured_outputs"
    for name, value in (given or {}).items():
        if value is None or value is False:
            continue
        if name not in STRUCTURED:
            raise InputError(f"{field} has no {name!r}.", hint=f"Known: {', '.join(STRUCTURED)}.", param=field)
        yield AskedForm(field, STRUCTURED[name], "object" if name == "json_object" else value)
