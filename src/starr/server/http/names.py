"""Errors name the field that the client sent: an option of decoding may have come under another name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from starr.errors import InputError
from starr.server.http.formats import asked_form
from starr.server.http.protocol import ChatBody, Decoding, InfillBody


def sent_names(body: Decoding) -> dict[str, str]:
    """Options of decoding → the fields of this body that set them, where the two differ."""
    form = asked_form(body)
    names = {} if form is None else {form.option: form.field}
    if isinstance(body, ChatBody):
        names["prompt"] = "messages"
        if body.max_completion_tokens is not None:
            names["max_tokens"] = "max_completion_tokens"
    if isinstance(body, InfillBody):
        names["prompt"] = "text"
    return names


@contextmanager
def told_as(names: Mapping[str, str]) -> Iterator[None]:
    """Errors that are raised within speak of fields under these names."""
    try:
        yield
    except InputError as error:
        param = names.get(error.param or "", error.param)
        message, hint = spoken(error.message, names), spoken(error.hint, names)
        raise type(error)(message, hint=hint, param=param) from None


def spoken(text: str, names: Mapping[str, str]) -> str:
    """A text with other names for options, except within what the client wrote, which is quoted.

    A name that is a word of English, too, counts only where an error of ours would put an option.
    """
    for name, sent in names.items():
        before = r"(?<![\w'\"/])" if "_" in name else r"(?:^|(?<=: )|(?<=used with ))"
        text = re.sub(rf"{before}{name}\b", sent, text)
    return text
