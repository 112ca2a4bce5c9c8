"""Who renders a chat template: this process if the template is plain, else a child process with limits.

Jinja's sandbox keeps a template from the machine, but lets it loop and allocate. A plain template cannot: it is short,
names few things, has no assignments, calls or products, and a loop sees one message at a time, so that its work is
bounded by the length of the messages. Every other one is compiled and rendered in a child with little memory, which
is ended when it takes long. What either writes is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from jinja2 import Environment, nodes

from starr.errors import LoadError
from starr.model.text.chat import Messages, compile_template, rendered
from starr.model.text.child import Answerer, LimitedChild, answer_all

NAME = "The model's chat template"
MEMORY = 2**30  # bytes of the child
MOST_SOURCE, MOST_PLAIN, MOST_NAMES = 200_000, 4_000, 32  # characters of a template; and of a plain one, and its names
PLAIN = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.CondExpr, nodes.Const, nodes.Name,
    nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Compare, nodes.Operand, nodes.Not, nodes.And, nodes.Or,
    nodes.Add, nodes.Concat, nodes.Call,
)  # fmt: skip


class ChatTemplate(Protocol):
    """Writes a chat as text."""

    def text(self, messages: Messages, variables: Mapping[str, Any]) -> str:
        """The messages as the template writes them; InputError if it cannot."""


class InnerTemplate:
    """Rendered here."""

    def __init__(self, source: str) -> None:
        self.compiled = compile_template(source)

    def text(self, messages: Messages, variables: Mapping[str, Any]) -> str:
        """See ``ChatTemplate``."""
        return rendered(self.compiled, messages, variables)


class OuterTemplate:
    """Rendered in a child process, which compiles the template when it starts and again after it was ended."""

    def __init__(self, source: str) -> None:
        self.child = LimitedChild(__name__, {"source": source}, NAME)

    def text(self, messages: Messages, variables: Mapping[str, Any]) -> str:
        """See ``ChatTemplate``."""
        question = {"messages": [dict(message) for message in messages], "variables": dict(variables)}
        return str(self.child.ask(question, "messages")["text"])


def chat_template(source: str) -> ChatTemplate:
    """A template that renders where it is safe; LoadError if it cannot be read."""
    if len(source) > MOST_SOURCE:
        raise LoadError(f"The model's chat template has {len(source)} characters, more than {MOST_SOURCE}.")
    return InnerTemplate(source) if plain(source) else OuterTemplate(source)


def plain(source: str) -> bool:
    """Whether a template has few parts, and only such whose work is bounded by the length of the messages."""
    if len(source) > MOST_PLAIN:
        return False
    try:
        tree = Environment(autoescape=True).parse(source)  # only read, never rendered
        parts = inside(tree)
    except Exception:  # whatever is wrong with it is told where it is compiled
        return False
    few = sum(isinstance(node, nodes.Name) for node in parts) <= MOST_NAMES
    return few and all(isinstance(node, PLAIN) and bounded(node) for node in parts)


def bounded(node: nodes.Node) -> bool:
    """Whether a node of a plain kind is: loops over messages that name only theirs, ``trim`` and ``strip()``."""
    if isinstance(node, nodes.For):
        once = (
            isinstance(node.iter, nodes.Name) and node.iter.name == "messages" and isinstance(node.target, nodes.Name)
        )
        inner = [found for part in (*node.body, *node.else_, node.test) if part for found in inside(part)]
        loops = node.recursive or any(isinstance(found, nodes.For) for found in inner)
        own = (getattr(node.target, "name", ""), "loop")
        return once and not loops and all(f.name in own for f in inner if isinstance(f, nodes.Name))
    if isinstance(node, nodes.Filter):
        return node.name == "trim" and not (node.args or node.kwargs)
    if isinstance(node, nodes.Call):
        strip = isinstance(node.node, nodes.Getattr) and node.node.attr == "strip"
        return strip and not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
    return True


def inside(node: nodes.Node) -> list[nodes.Node]:
    """A node and all within it."""
    return [node, *node.find_all(nodes.Node)]


def begin(words: dict[str, Any]) -> Answerer:
    """In the child: compile the source, then render messages."""
    template = InnerTemplate(words["source"])

    return lambda question: {"text": template.text(question["messages"], question["variables"])}


if __name__ == "__main__":
    answer_all(begin, NAME, MEMORY)
