"""Functions that an answer may call: what the prompt says of them, which texts are calls, and how a call is read.

A chat template that takes ``tools`` writes them in its own form. For any other template, a system message lists them,
and calls and results are turns of plain text. A call is one JSON object, ``{"name": …, "arguments": {…}}``, between
the marks of the template where it has some. An answer begins with the first character of a call if it is one, and with
any other character if it is text; the constraint ``tools`` keeps that apart, and holds arguments to their schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starr.errors import InputError

CHOICES = ("none", "auto", "required")
MOST_FUNCTIONS = 128
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
HEAD = re.compile(r'\s*\{"name": "([a-zA-Z0-9_-]+)", "arguments": ')
RULES = {
    "auto": "To call one, answer with nothing but a line like this, else answer with text:",
    "required": "Answer with nothing but a call of one of them, a line like this:",
}
LIKE = '{"name": "function", "arguments": {"argument": "value"}}'
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The functions that an answer may call, as OpenAI's ``function`` objects, and whether it must."""

    functions: tuple[Mapping[str, Any], ...]
    must: bool
    marks: tuple[str, str] = ("", "")  # what the model's template has around a call

    def constraint(self) -> dict[str, Any]:
        """What the constraint on the answer is made of."""
        schemas = {each["name"]: read_parameters(each) for each in self.functions}
        return {"functions": schemas, "marks": self.marks, "text": not self.must}

    def shown(self) -> list[dict[str, Any]]:
        """The functions as templates want them."""
        return [{"type": "function", "function": dict(each)} for each in self.functions]


@dataclass(frozen=True, slots=True)
class Call:
    """A call in an answer. ``arguments`` is JSON text; it may still grow unless the call is ``whole``."""

    name: str
    arguments: str
    whole: bool


def read_toolbox(tools: Any, choice: Any) -> Toolbox | None:
    """Read the options ``tools`` and ``tool_choice``; None where no call is possible."""
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except (ValueError, RecursionError):
            raise refuse("must be JSON") from None
    if isinstance(tools, str) or not isinstance(tools, Sequence | None):
        raise refuse("must be a list of functions")
    functions = tuple(read_function(tool) for tool in tools or ())
    names = [each["name"] for each in functions]
    if len(functions) > MOST_FUNCTIONS or len(set(names)) < len(names):
        raise refuse(f"may have at most {MOST_FUNCTIONS} functions, each with a name of its own")
    if choice not in (*CHOICES, *names):
        hint = f"Known: {', '.join((*CHOICES, *names)[:8])}."
        raise InputError(f"tool_choice has no function {choice!r:.80}.", hint=hint, param="tool_choice")
    if choice == "required" and not functions:
        raise InputError("tool_choice required needs tools.", param="tool_choice")
    if choice == "none" or not functions:
        return None
    named = tuple(each for each in functions if each["name"] == choice)
    return Toolbox(named or functions, choice != "auto")


def read_function(tool: Any) -> Mapping[str, Any]:
    """Read one tool, which must be a function."""
    inner = tool.get("function") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
    if not isinstance(inner, Mapping):
        raise refuse('must be objects of the type "function" with a function')
    name = inner.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in CHOICES:
        rule = f"needs names of 1 to 64 letters, digits, _ and -, other than {', '.join(CHOICES)}"
        raise refuse(f"{rule}; got {name!r:.80}")
    read_parameters(inner)
    return inner


def read_parameters(function: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a function's arguments, an object; a function that declares none takes none."""
    found = function.get("parameters")
    if found is None or found == {}:
        return NOTHING
    if not isinstance(found, Mapping) or found.get("type") != "object":
        raise refuse(f'needs parameters of the type "object", which those of {function["name"]} are not')
    return {**found, "additionalProperties": False} if found.get("properties") == {} else found


def refuse(rule: str) -> InputError:
    """Build the error about ``tools``."""
    return InputError(f"tools {rule}.", param="tools")


def write_out(messages: Sequence[Mapping[str, Any]], box: Toolbox | None) -> list[dict[str, str]]:
    """The messages for a template without tools: functions, calls and results are text."""
    names: dict[str, str] = {}
    told: list[dict[str, str]] = []
    for message in messages:
        calls, text = read_calls(message), message.get("content")
        if message.get("role") == "tool" and isinstance(text, str):
            name = names.get(str(message.get("tool_call_id")), "the function")
            told.append({"role": "user", "content": f"{name} returned:\n{text}"})
        elif calls:
            names |= {str(call["id"]): call["name"] for call in calls}
            lines = [write_call(call["name"], json.dumps(call["arguments"], ensure_ascii=False)) for call in calls]
            told.append({"role": "assistant", "content": "\n".join([text, *lines] if text else lines)})
        else:
            told.append(dict(message))
    if box is None:
        return told
    lines = ["You can call these functions:", *(json.dumps(each, ensure_ascii=False) for each in box.functions)]
    listed = "\n".join([*lines, RULES["required" if box.must else "auto"], LIKE])
    if told and told[0].get("role") == "system":
        return [{**told[0], "content": f"{told[0].get('content', '')}\n\n{listed}"}, *told[1:]]
    return [{"role": "system", "content": listed}, *told]


def hand_over(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages for a template with tools: the arguments of calls are objects."""
    told = []
    for message in messages:
        calls = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in read_calls(message)
        ]
        text = message.get("content") or ""
        told.append({**message, "content": text, "tool_calls": calls} if calls else dict(message))
    return told


def read_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls in a message of the assistant: their ids, names and arguments."""
    given = message.get("tool_calls") or []
    found = []
    for call in given if isinstance(given, Sequence) else [given]:
        inner = call.get("function") if isinstance(call, Mapping) else None
        try:
            name, arguments = inner["name"], inner.get("arguments") or "{}"  # type: ignore[index, union-attr]
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        except (TypeError, KeyError, ValueError, AttributeError, RecursionError):
            name, arguments = None, None
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            rule = "tool_calls of a message must have a function with a name, and arguments that are a JSON object."
            raise InputError(rule, param="messages")
        found.append({"id": call.get("id"), "name": name, "arguments": arguments})
    return found


def write_call(name: str, arguments: str) -> str:
    """A call as text, without marks."""
    return f'{{"name": {json.dumps(name)}, "arguments": {arguments}}}'


def split_answer(text: str, box: Toolbox | None) -> tuple[str, Call | None]:
    """The text and the call of an answer, of which one is empty; a call is None until its name is whole."""
    opening = "{" if box is None else box.marks[0] + "{"
    if box is None or not text.startswith(opening[0]):
        return text, None
    head = HEAD.match(text, len(box.marks[0]))
    if head is None:
        return "", None
    rest = text[head.end() :]
    try:
        _, end = json.JSONDecoder().raw_decode(rest)
    except (ValueError, RecursionError):
        return "", Call(head[1], rest, False)
    whole = text.endswith("}" + box.marks[1]) and len(rest) > end
    return "", Call(head[1], rest[:end], whole)
