"""The state of a conversation and the commands that change it: pure functions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from starr.errors import InputError, did_you_mean

HELP = """\
/strategy [FORM]    show or change the strategy, e.g. /strategy threshold:tau=0.8
/cache [FORM]       show or change the cache
/set NAME VALUE     change an option of the strategy or of decoding, e.g. /set max_tokens 64
/set                show them all
/live               switch the live canvas on or off
/history            show the conversation
/reset              forget the conversation
/quit               end (also Ctrl-D); Ctrl-C stops an answer"""

COMMANDS = ("/strategy", "/cache", "/set", "/live", "/history", "/reset", "/help", "/quit")
SETTABLE: dict[str, type] = {
    "max_tokens": int,
    "block_length": int,
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "seed": int,
    "max_forwards": int,
    "enforce": str,
    "guidance": float,
    "eos": str,
}


@dataclass(frozen=True)
class Session:
    """What was said, and how the next answer is decoded."""

    arguments: dict[str, Any]
    live: bool = False
    messages: list[dict[str, str]] = field(default_factory=list)

    def said(self, question: str, text: str) -> Session:
        """The conversation with one more turn."""
        new = [{"role": "user", "content": question}, {"role": "assistant", "content": text}]
        return replace(self, messages=self.messages + new)

    def shorter(self) -> Session:
        """The conversation without its oldest turn."""
        return replace(self, messages=self.messages[2:])

    def having(self, **changed: Any) -> Session:
        return replace(self, arguments=self.arguments | changed)


def turn(session: Session, question: str) -> list[dict[str, str]]:
    """The messages to send for a question."""
    return [*session.messages, {"role": "user", "content": question}]


def obey(session: Session, line: str) -> tuple[Session, str | None]:
    """Carry out a command line: the new session and what to print; None ends the conversation."""
    word, *rest = line.split()
    match word, rest:
        case "/quit" | "/exit", []:
            return session, None
        case "/help", []:
            return session, HELP
        case "/reset", []:
            return replace(session, messages=[]), "The conversation is forgotten."
        case "/live", []:
            live = not session.live
            return replace(session, live=live), f"live {'on' if live else 'off'}"
        case "/history", []:
            return session, "\n".join(f"{m['role']}: {m['content']}" for m in session.messages) or "Nothing said yet."
        case "/strategy" | "/cache", []:
            return session, form(session.arguments[word[1:]])
        case "/strategy" | "/cache", [text]:
            return choose(session, word[1:], text)
        case "/set", []:
            return session, settings(session)
        case "/set", [name, value]:
            return change(session, name, value)
    if word not in COMMANDS:
        raise InputError(f"Unknown command {word!r}.", hint=did_you_mean(word, COMMANDS))
    raise InputError(f"{word} does not take {len(rest)} words.", hint="See /help.")


def choose(session: Session, kind: str, text: str) -> tuple[Session, str]:
    import starr

    member = starr.strategy(text) if kind == "strategy" else starr.cache(text)
    return session.having(**{kind: member}), f"{kind} {form(member)}"


def change(session: Session, name: str, value: str) -> tuple[Session, str]:
    """Set an argument of decoding, or else an option of the present strategy."""
    strategy = session.arguments["strategy"]
    if name in SETTABLE:
        return session.having(**{name: convert(name, value)}), f"{name} {value}"
    known = [option.name for option in options_of(strategy)]
    if name not in known:
        raise InputError(f"There is nothing named {name!r} to set.", hint=did_you_mean(name, [*SETTABLE, *known]))
    text = form(strategy)
    kept = [part for part in text.partition(":")[2].split(",") if part and part.partition("=")[0] != name]
    return choose(session, "strategy", f"{strategy.name}:{','.join([*kept, f'{name}={value}'])}")


def convert(name: str, value: str) -> Any:
    kind = SETTABLE[name]
    if value == "none" and name in ("block_length", "max_forwards"):
        return None
    try:
        return kind(value)
    except ValueError:
        raise InputError(f"{name} must be {kind.__name__}, got {value!r}.", param=name) from None


def settings(session: Session) -> str:
    """Every value that /set can change, one per line."""
    strategy = session.arguments["strategy"]
    lines = [f"{name} {session.arguments[name]}" for name in SETTABLE]
    lines += [f"{option.name} {getattr(strategy, option.name)}" for option in options_of(strategy)]
    return "\n".join(lines)


def options_of(strategy: Any) -> Any:
    from starr.strategy.registry import options_of as read

    return read(type(strategy))


def form(member: Any) -> str:
    from starr.strategy.registry import text_form

    return text_form(member)
