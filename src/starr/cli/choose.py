"""``starr choose``: which answer, and how probable each is, from one forward."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import typer

from starr.cli.files import read_prompt
from starr.cli.flags import Json, ModelFlags
from starr.cli.known import remark
from starr.cli.report import dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ChooseOptions(ModelFlags):
    """The flags of ``starr choose``."""

    prompt: Annotated[
        str | None,
        typer.Argument(metavar="PROMPT", help="The prompt, or a text with [MASK]; - or a pipe reads standard input."),
    ] = None
    choices: Annotated[
        list[str], typer.Option("--choices", help="yes|no, or a JSON list; once for each [MASK] of a text.")
    ]
    chat: Annotated[
        bool | None, typer.Option("--chat/--no-chat", help="Use the chat template.", show_default="if there is one")
    ] = None
    json: Json = False


def read_list(text: str) -> list[str]:
    """Choices as they are given to the flag."""
    try:
        return list(json.loads(text)) if text.lstrip().startswith("[") else text.split("|")
    except ValueError:
        raise InputError(f"--choices is not JSON: {text!r}.", hint="Or write yes|no.", param="choices") from None


def add(app: typer.Typer) -> None:
    """Add ``starr choose``."""
    verb(app, "choose", ChooseOptions, choose)


def choose(options: ChooseOptions) -> None:
    """Choose an answer, with the probability of each.

    A prompt takes --choices once. A text with [MASK] holes takes it once for each; one forward reads them all.
    """
    import starr
    from starr.decode.choose.questions import asks_within

    prompt = read_prompt(options.prompt)
    holed = asks_within(prompt)
    if not holed and len(options.choices) != 1:
        raise InputError("A prompt takes --choices once.", hint="Or write a [MASK] for each.", param="choices")
    lists = [read_list(each) for each in options.choices]
    model = options.load()
    found = starr.choose(model, prompt, lists) if holed else starr.choose(model, prompt, lists[0], chat=options.chat)
    remark(model, prompt, options.quiet)
    if not holed:
        note(
            "(from one forward, without steps: `starr run` is safer where an answer must be worked out)", options.quiet
        )
    answers = found if holed else [found]
    if options.json:
        bodies = [{"text": a.text, "probability": a.probability, "probabilities": a.probabilities} for a in answers]
        print(dump(bodies if holed else bodies[0]))
        return
    for number, answer in enumerate(answers, start=1):
        ranked = sorted(answer.probabilities.items(), key=lambda pair: -pair[1])
        head = f"hole {number}" if holed else "choice"
        print(table((head, "probability"), [(text, f"{share:.4f}") for text, share in ranked]))
