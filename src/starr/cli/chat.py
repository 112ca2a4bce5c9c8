"""``starr chat``: a conversation. Lines that begin with / change how the next answer is decoded."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from starr.cli.flags import Decode, Live
from starr.cli.known import remark, remark_turns
from starr.cli.report import figures, note
from starr.cli.session import Session, obey, strategy_of, turn
from starr.cli.verb import verb
from starr.errors import InputError, LengthError, StarrError

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, kw_only=True)
class ChatOptions(Decode):
    """The flags of ``starr chat``."""

    live: Live = False


def add(app: typer.Typer) -> None:
    """Add ``starr chat``."""
    verb(app, "chat", ChatOptions, chat)


def chat(options: ChatOptions) -> None:
    """Talk to the model.

    /help lists the commands; Ctrl-C stops an answer, Ctrl-D or /quit ends.
    """
    from starr.api import resolve
    from starr.named import text_form

    decoding = options.parse()
    model = options.load()
    decoding = resolve(decoding, model)
    edit_lines()
    note(f"{model.name}, {text_form(decoding.strategy)}. /help lists the commands.", options.quiet)
    session = Session(options=decoding, live=options.live, single=remark_turns(model, options.quiet))
    while (line := ask()) is not None:
        if not line.strip():
            continue
        try:
            if line.startswith("/"):
                session, message = obey(session, line)
                if message is None:
                    return
                print(message)
            else:
                session = answer(model, session, line, options.quiet)
        except StarrError as error:
            print(f"starr: {error}", file=sys.stderr)


def ask() -> str | None:
    """The next line; Ctrl-C gives an empty one, the end of input None."""
    try:
        return input("> ")
    except EOFError:
        print()
        return None
    except KeyboardInterrupt:
        print("\n(Ctrl-D or /quit ends)")
        return ""


def answer(model: Model, session: Session, line: str, quiet: bool) -> Session:
    """Stream the answer to a line; Ctrl-C stops it and forgets the turn."""
    remark(model, line, quiet)
    while True:
        try:
            text = stream(model, turn(session, line), session, quiet)
            return session.said(line, text)
        except KeyboardInterrupt:
            print("\n(stopped; this turn is forgotten)")
            return session
        except LengthError:
            if session.single or not session.messages:
                raise
            session = session.shorter()
            note("(the conversation no longer fits: its oldest turn is forgotten)", quiet)


def stream(model: Model, messages: list[dict[str, str]], session: Session, quiet: bool) -> str:
    """Print settled text as it comes, or the whole canvas when live; return the answer."""
    import starr

    if not model.tokenizer.has_chat:
        raise InputError(f"{model.name} has no chat template.", hint="Use `starr run` for a base model.")
    shown, stats, events = "", None, starr.stream(model, messages, **session.arguments)
    if session.live:
        return watch(events, strategy_of(session).name)
    for event in events:
        print(event.text[len(shown) :], end="", flush=True)
        shown, stats = event.text, event.generation.stats if event.generation else None
    print()
    if stats is not None:
        note(f"({figures(stats)})" if shown else "(the answer is empty: the model ended at once)", quiet)
    return shown


def watch(events: Any, name: str) -> str:
    """Draw the canvas of every event; return the answer."""
    from starr.viewer.terminal import Live

    text = ""
    with Live([name], stream=sys.stdout) as screen:
        for event in events:
            screen.show(event)
            text = event.text
    return text


def edit_lines() -> None:
    """Arrow keys and history within the conversation, where Python has readline."""
    if sys.stdin.isatty():
        try:
            import readline
        except ImportError:
            return
        readline.set_history_length(1000)
