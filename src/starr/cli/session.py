"""The state of a conversation and the commands that change it: pure functions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starr.errors import InputError, counted, did_you_mean
from starr.named import convert, options_of, text_form
from starr.options import SET, Options, options_at

if TYPE_CHECKING:
    from starr.decode.strategies.base import Strategy

HELP = """\
/strategy [FORM]    show or change the strategy, e.g. /strategy threshold:tau=0.8
/cache [FORM]       show or change the cache
/set NAME VALUE     change an option of the strategy or of decoding, e.g. /set max_tokens 64
/set                show them all
/live               switch the live canvas on or off
/system [TEXT]      show or change the system prompt; /system none takes it away
/history            show the conversation
/save FILE          write the conversation as a line of JSON that `starr run --input` reads
/reset              forget the conversation
/quit               end (also Ctrl-D); Ctrl-C stops an answer"""

COMMANDS = ("/strategy", "/cache", "/set", "/live", "/system", "/history", "/save", "/reset", "/help", "/quit")
SETTABLE = {option.name: option for option in options_at(SET)}


@dataclass(frozen=True)
class Session:
    """What was said, and how the next answer is decoded."""

    options: Options
    live: bool = False
    single: bool = False  # the model knows single questions: the conversation is kept, but not sent
    messages: list[dict[str, str]] = field(default_factory=list)

    def said(self, question: str, text: str) -> Session:
        """The conversation with one more turn."""
        new = [{"role": "user", "content": question}, {"role": "assistant", "content": text}]
        return replace(self, messages=self.messages + new)

    def shorter(self) -> Session:
        """The conversation without its oldest turn."""
        return replace(self, messages=self.messages[2:])

    @property
    def arguments(self) -> dict[str, Any]:
        """How the next answer is decoded, as keyword arguments of ``starr.stream``."""
        return self.options.keywords()

    def having(self, **changed: Any) -> Session:
        """The conversation with other options; their bounds and text forms are checked."""
        from starr.api import parse_options, read_files

        return replace(self, options=parse_options(read_files(replace(self.options, **changed))))


def turn(session: Session, question: str) -> list[dict[str, str]]:
    """The messages to send for a question."""
    before = [] if session.single else session.messages
    return [*before, {"role": "user", "content": question}]


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
        case "/system", []:
            return session, session.options.system or "There is no system prompt."
        case "/system", _:
            text = line.partition(" ")[2].strip()
            changed = session.having(system=None if text == "none" else text)
            return changed, "The system prompt is changed; it holds from the next answer on."
        case "/save", [name]:
            return session, save(session, Path(name).expanduser())
        case "/strategy" | "/cache", []:
            return session, shown(session, word[1:])
        case "/strategy" | "/cache", [text]:
            return choose(session, word[1:], text)
        case "/set", []:
            return session, settings(session)
        case "/set", [name, value]:
            return change(session, name, value)
    if word not in COMMANDS:
        raise InputError(f"Unknown command {word!r}.", hint=did_you_mean(word, COMMANDS))
    raise InputError(f"{word} does not take {counted(len(rest), 'word')}.", hint="See /help.")


def save(session: Session, path: Path) -> str:
    """Write the conversation to a new file, with its system prompt."""
    if not session.messages:
        raise InputError("Nothing was said yet.", hint="Ask something first.")
    system = session.options.system
    first = [] if system is None else [{"role": "system", "content": system}]
    try:
        with path.open("x", encoding="utf8") as file:
            file.write(json.dumps({"messages": [*first, *session.messages]}, ensure_ascii=False) + "\n")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.", hint="Choose another name.") from None
    return f"wrote {path}"


def choose(session: Session, kind: str, text: str) -> tuple[Session, str]:
    """Take another strategy or cache."""
    changed = session.having(**{kind: text})
    return changed, f"{kind} {shown(changed, kind)}"


def change(session: Session, name: str, value: str) -> tuple[Session, str]:
    """Set an argument of decoding, or else an option of the present strategy."""
    if name in SETTABLE:
        return session.having(**{name: convert(SETTABLE[name], value)}), f"{name} {value}"
    strategy = strategy_of(session)
    known = [option.name for option in options_of(type(strategy))]
    if name not in known:
        raise InputError(f"There is no option {name!r} to set.", hint=did_you_mean(name, [*SETTABLE, *known]))
    text = text_form(strategy)
    kept = [part for part in text.partition(":")[2].split(",") if part and part.partition("=")[0] != name]
    return choose(session, "strategy", f"{strategy.name}:{','.join([*kept, f'{name}={value}'])}")


def settings(session: Session) -> str:
    """Every value that /set can change, one per line."""
    strategy = strategy_of(session)
    lines = [f"{name} {shown(session, name)}" for name in SETTABLE]
    lines += [f"{option.name} {getattr(strategy, option.name)}" for option in options_of(type(strategy))]
    return "\n".join(lines)


def strategy_of(session: Session) -> Strategy:
    """The present strategy."""
    import starr

    return starr.strategy(session.options.strategy or "starr")


def shown(session: Session, name: str) -> str:
    """An option's value as it is written: members in their text form, several joined by +."""
    value = getattr(session.options, name)
    if isinstance(value, tuple):
        return "+".join(part if isinstance(part, str) else text_form(part) for part in value) or "none"
    return text_form(value) if hasattr(value, "paper") else str(value)
