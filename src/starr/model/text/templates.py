"""Who renders a chat template: this process if the template is plain, else a child process with limits.

Jinja's sandbox keeps a template from the machine, but lets it loop and allocate. A plain template cannot: it has no
assignments, calls, products or loops within loops, so that its text is bounded by its length times that of the
messages. Every other one is compiled and rendered in a child with little memory, which is ended when it takes long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Protocol, cast

from jinja2 import Environment, nodes

from starr.errors import InputError, LoadError
from starr.model.text.chat import Messages, compile_template, rendered

SECONDS = 10.0  # for the compilation, and for one rendering
START_SECONDS = 60.0  # for the child's own start, on a busy machine
MEMORY = 2**30  # bytes of the child
MOST_SOURCE, MOST_TEXT = 200_000, 8_000_000  # characters of a template, and of what it writes
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
    """Rendered in a child process, which starts with the template and again after it was ended."""

    def __init__(self, source: str) -> None:
        self.source, self.lock = source, threading.Lock()
        self.child: subprocess.Popen[str] | None = None
        self.start()

    def text(self, messages: Messages, variables: Mapping[str, Any]) -> str:
        """See ``ChatTemplate``."""
        with self.lock:
            if self.child is None:
                self.start()
            answer = self.ask({"messages": [dict(message) for message in messages], "variables": dict(variables)})
        if "error" in answer:
            raise InputError(answer["error"], param="messages")
        return str(answer["text"])

    def start(self) -> None:
        """Start the child and let it compile the template; LoadError if it cannot."""
        paths = os.pathsep.join(part for part in sys.path if part)
        command = [sys.executable, "-m", "starr.model.text.templates"]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf8",
            errors="surrogatepass", env=os.environ | {"PYTHONPATH": paths},
        )  # fmt: skip
        weakref.finalize(self, self.child.kill)
        started = self.ask({}, START_SECONDS)
        answer = started if self.child is None else self.ask({"source": self.source})
        if "error" in answer:
            raise LoadError(answer["error"])

    def ask(self, question: Mapping[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """The child's answer; an error, and no child any more, where there is none in time."""
        child = cast("subprocess.Popen[str]", self.child)
        timer = threading.Timer(seconds or SECONDS, child.kill)
        timer.start()
        line = ""
        with suppress(OSError, ValueError):
            stdin, stdout = cast("IO[str]", child.stdin), cast("IO[str]", child.stdout)
            stdin.write(json.dumps(question) + "\n")
            stdin.flush()
            line = stdout.readline()
        timer.cancel()
        if line:
            return cast("dict[str, Any]", json.loads(line))
        self.child = None
        child.kill()
        child.wait()
        return {"error": f"The model's chat template took more than {SECONDS:.0f} seconds or too much memory."}


def chat_template(source: str) -> ChatTemplate:
    """A template that renders where it is safe; LoadError if it cannot be read."""
    if len(source) > MOST_SOURCE:
        raise LoadError(f"The model's chat template has {len(source)} characters, more than {MOST_SOURCE}.")
    return InnerTemplate(source) if plain(source) else OuterTemplate(source)


def plain(source: str) -> bool:
    """Whether a template has only parts whose work is bounded by its length and that of the messages."""
    try:
        tree = Environment(autoescape=True).parse(source)  # only read, never rendered
    except Exception:  # whatever is wrong with it is told where it is compiled
        return False
    return all(isinstance(node, PLAIN) and bounded(node) for node in [tree, *tree.find_all(nodes.Node)])


def bounded(node: nodes.Node) -> bool:
    """Whether a node of a plain kind is: no loop within a loop, no filter but ``trim``, no call but ``strip()``."""
    if isinstance(node, nodes.For):
        return isinstance(node.iter, nodes.Name) and not node.recursive and node.find(nodes.For) is None
    if isinstance(node, nodes.Filter):
        return node.name == "trim" and not (node.args or node.kwargs)
    if isinstance(node, nodes.Call):
        strip = isinstance(node.node, nodes.Getattr) and node.node.attr == "strip"
        return strip and not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
    return True


def answers(lines: Sequence[str] | IO[str]) -> None:
    """The child: compile the source of the first line, render the messages of every other, answer each in one line.

    An empty question asks only whether the child has started.
    """
    template: InnerTemplate | None = None
    answer: dict[str, str]
    for line in lines:
        question = json.loads(line)
        try:
            if not question:
                answer = {}
            elif template is None:
                template, answer = InnerTemplate(question["source"]), {}
            else:
                text = template.text(question["messages"], question["variables"])
                answer = {"text": text} if len(text) <= MOST_TEXT else {"error": "The chat template writes too much."}
        except (LoadError, InputError) as error:
            answer = {"error": error.message}
        except (MemoryError, RecursionError, OverflowError) as error:
            answer = {"error": f"The model's chat template cannot be rendered: {type(error).__name__}."}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    with suppress(ImportError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers(sys.stdin)
