"""Answers that are calls of functions, or text, as a regular expression."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starr.decode.extras.constraints.expression import SENTINEL
from starr.decode.extras.constraints.schema import Translator
from starr.decode.prompts.tools import write_call
from starr.errors import InputError


def write_calls(asked: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Write the expression of ``Toolbox.constraint``; return it with the patterns of JSON strings inside it.

    A call begins with the first character of its opening mark, or of its JSON. A text begins with any other one.
    """
    opening, closing = asked["marks"]
    calls, patterns = [], []
    for name, schema in asked["functions"].items():
        translator = Translator(schema)
        try:
            arguments = translator.translate(schema)
        except InputError as error:
            rule = error.message.removeprefix("json_schema: ")
            raise InputError(f"tools: the parameters of {name}: {rule}", hint=error.hint, param="tools") from None
        before, after = write_call(name, "\0").split("\0")
        calls.append(re.escape(opening + before) + arguments + re.escape(after + closing))
        patterns += translator.patterns
    texts = [rf"(?:[^{re.escape((opening + '{')[0])}{SENTINEL}][^{SENTINEL}]*)?"] if asked["text"] else []
    return f"(?:{'|'.join([*texts, *calls])})", patterns
