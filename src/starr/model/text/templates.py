"""Who renders a chat template: this process if the template is plain, else a child process with limits.

Jinja's sandbox keeps a template from the machine, but lets it loop and allocate. A plain template cannot: it is short,
names few things, has no assignments, calls or products, and a loop sees one message at a time, so that its work is
bounded by the length of the messages. Every other one is compiled and rendered in a child with little memory, which
is ended when it takes long. What either writes is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jinja2 import Environment, nodes

from starr.errors import LoadError
from starr.model.child import Answerer, LimitedChild, answer_all
from starr.model.text.chat import Messages, compile_template, write_text

NAME = "The model's chat template"
MEMORY = 2**30  # bytes of the child
MOST_SOURCE, MOST_PLAIN, MOST_NAMES = 200_000, 4_000, 32  # characters of a template; and of a plain one, and its names
PLAIN = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.CondExpr, nodes.Const, nodes.Name,
    nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Compare, nodes.Operand, nodes.Not, nodes.And, nodes.Or,
    nodes.Add, nodes.Concat, nodes.Call,
)  # fmt: skip


Writer = Callable[[Messages, Mapping[str, Any]], str]
"""Gives the text of messages with a template's variables, or raises InputError."""


def read_template(source: str) -> Writer:
    """Choose where a template is rendered; LoadError if it cannot be read."""
    if len(source) > MOST_SOURCE:
        raise LoadError(f"The model's chat template has {len(source)} characters, more than {MOST_SOURCE}.")
    return compile_writer(source) if is_plain(source) else start_writer(source)


def compile_writer(source: str) -> Writer:
    """Compile a template for this process."""
    return partial(write_text, compile_template(source))


def start_writer(source: str) -> Writer:
    """Start a child process that compiles and renders a template."""
    return partial(ask_child, LimitedChild(__name__, {"source": source}, NAME))


def ask_child(child: LimitedChild, messages: Messages, variables: Mapping[str, Any]) -> str:
    """Let the child render messages."""
    question = {"messages": [dict(message) for message in messages], "variables": dict(variables)}
    return str(child.ask(question, "messages")["text"])


def is_plain(source: str) -> bool:
    """Test whether a template is short and the length of the messages bounds its work."""
    if len(source) > MOST_PLAIN:
        return False
    try:
        tree = Environment(autoescape=True).parse(source)  # only read, never rendered
        parts = list_nodes(tree)
    except Exception:  # the compilation says what is wrong
        return False
    few = sum(isinstance(node, nodes.Name) for node in parts) <= MOST_NAMES
    return few and all(isinstance(node, PLAIN) and is_bounded(node) for node in parts)


def is_bounded(node: nodes.Node) -> bool:
    """Test the work of a node: loops over messages that name only their own variables, ``trim`` and ``strip()``."""
    if isinstance(node, nodes.For):
        once = (
            isinstance(node.iter, nodes.Name) and node.iter.name == "messages" and isinstance(node.target, nodes.Name)
        )
        inner = [found for part in (*node.body, *node.else_, node.test) if part for found in list_nodes(part)]
        loops = node.recursive or any(isinstance(found, nodes.For) for found in inner)
        own = (getattr(node.target, "name", ""), "loop")
        return once and not loops and all(f.name in own for f in inner if isinstance(f, nodes.Name))
    if isinstance(node, nodes.Filter):
        return node.name == "trim" and not (node.args or node.kwargs)
    if isinstance(node, nodes.Call):
        strip = isinstance(node.node, nodes.Getattr) and node.node.attr == "strip"
        return strip and not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
    return True


def list_nodes(node: nodes.Node) -> list[nodes.Node]:
    """List a node and all nodes within it."""
    return [node, *node.find_all(nodes.Node)]


def begin(words: dict[str, Any]) -> Answerer:
    """Compile the source in the child; return what renders messages."""
    write = compile_writer(words["source"])
    return lambda question: {"text": write(question["messages"], question["variables"])}


if __name__ == "__main__":
    answer_all(begin, NAME, MEMORY)
