"""From a body to rows: ``read_body`` reads every field once, ``build_rows`` makes the rows, all before queueing."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starr.api import Prompt, build_requests
from starr.decode.prompts.prepare import check_ids, encode_chat
from starr.decode.request import Request
from starr.decode.strategies import strategy
from starr.errors import InputError, LengthError, did_you_mean
from starr.model.load import Model
from starr.named import check_range, set_options
from starr.options import Options
from starr.server.errors import Missing
from starr.server.http.bodies import ChatBody, CompletionBody, Decoding, Form, InfillBody, TokenizeBody
from starr.server.settings import STREAMED, Settings

MOST_CHOICES = 32
MOST_STOPS = 16
LONG = 16  # characters for each position of the model: a text that is longer is looked at before it is encoded
MOST_TRACED = 1 << 19  # cells: canvas positions times steps, over all rows of a request


@dataclass(frozen=True, slots=True)
class Asked:
    """What a body asks for."""

    prompts: Sequence[Prompt]
    n: int
    options: dict[str, Any]  # options of decoding that were given, and the form of the answer among them
    names: dict[str, str]  # options → the fields that set them, where the two differ
    form: Form | None
    suffix: str
    timeout: float
    stream: bool
    include_usage: bool
    diffusing: bool
    logprobs: int | None  # how many likely tokens come with each; None is no logprobs at all

    @property
    def chooses(self) -> bool:
        """Whether it asks for choices with probabilities."""
        return self.form is not None and self.form.option == "choices" and self.logprobs is not None

    @property
    def rows(self) -> int:
        """Answers in all."""
        return len(self.prompts) * self.n


def read_body(body: Decoding, model: Model, settings: Settings) -> Asked:
    """Read every field once; raise InputError or Missing where one breaks a rule by itself."""
    check_model(body.model, model)
    n = 1 if body.n is None else body.n
    check_range("n", n, 1, MOST_CHOICES)
    form = read_form(body)
    kind = {"chat": body.kind == ChatBody.kind, "infill": isinstance(body, InfillBody), "stop": read_stops(body.stop)}
    asked = Asked(
        prompts=body.prompts(),
        n=n,
        options=body.given() | kind | ({} if form is None else form.options()),
        names=body.names() | ({} if form is None else {form.option: form.field}),
        form=form,
        suffix=(body.suffix or "") if isinstance(body, CompletionBody) else "",
        timeout=read_timeout(body.timeout, settings.timeout),
        stream=bool(body.stream),
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        diffusing=bool(body.diffusing),
        logprobs=None if isinstance(body, InfillBody) else body.likely(),
    )
    if asked.diffusing and not asked.stream:
        raise InputError("diffusing needs stream.", hint="Frames are only sent in a stream.", param="diffusing")
    if asked.diffusing and "tools" in asked.options:
        raise InputError("diffusing cannot show calls.", hint="Leave tools or diffusing out.", param="diffusing")
    if asked.rows > settings.max_queue:
        rule = f"The request has {asked.rows} rows; at most {settings.max_queue} are allowed."
        raise InputError(rule, param=asked.names.get("prompt", "prompt"))
    if asked.chooses and (asked.stream or asked.rows > 1):
        raise InputError("choice with logprobs takes one prompt, n 1 and no stream.", param=asked.names["choices"])
    return asked


def check_model(name: str | None, model: Model) -> None:
    """Raise unless the model is the one that is served."""
    if name is not None and name != model.name:
        raise Missing(f"There is no model {name!r}.", hint=did_you_mean(name, [model.name]), param="model")


def read_form(body: Decoding) -> Form | None:
    """The form that the answer must have; two of them are refused."""
    found = list(body.forms())
    if len(found) > 1:
        rule = "An answer can have only one form: response_format, regex, choice or tools."
        raise InputError(rule, hint="Leave all but one out.", param=found[1].field)
    return found[0] if found else None


def read_stops(stop: str | list[str] | None) -> tuple[str, ...]:
    """The stop strings, none of them empty."""
    found = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(found) > MOST_STOPS or not all(found):
        raise InputError(f"stop takes up to {MOST_STOPS} texts, none of them empty.", param="stop")
    return found


def read_timeout(asked: float | None, most: float) -> float:
    """Seconds until the request is given up: what was asked for, within the server's own bound."""
    if asked is None:
        return most
    check_range("timeout", asked, 0.0, most, whole=False, open_low=True)
    return asked


def build_rows(asked: Asked, model: Model, settings: Settings) -> list[Request]:
    """The rows of a request: ``n`` for each prompt, with seeds that follow each other; every row is watched."""
    for prompt in asked.prompts:
        check_size(prompt, model, asked.names.get("prompt", "prompt"))
    options = build_options(asked, model, settings)
    likely = asked.logprobs or 0
    built = build_requests(model, asked.prompts, options, stream=True, candidates=likely, suffix=asked.suffix)
    rows = [row.change(seed=options.seed + number) for row in built for number in range(asked.n)]
    if options.trace or asked.logprobs:
        check_traced(rows)
    return rows


def is_long(prompt: Prompt, model: Model) -> bool:
    """Whether a prompt has so many characters or tokens that it is unlikely to fit."""
    return count_characters(prompt) > LONG * model.spec.max_length


def count_characters(prompt: Prompt) -> int:
    """Characters of a text or of all messages; LONG for each token."""
    if isinstance(prompt, str):
        return len(prompt)
    if prompt and isinstance(prompt[0], int):
        return LONG * len(prompt)
    return len(text_of(prompt))


def text_of(prompt: Prompt) -> str:
    """The contents of all messages, and the calls in them."""
    told = [message for message in prompt if isinstance(message, Mapping)]
    calls = [json.dumps(message["tool_calls"]) for message in told if "tool_calls" in message]
    return "".join([*(message["content"] for message in told), *calls])


def check_size(prompt: Prompt, model: Model, field: str = "prompt") -> None:
    """Raise LengthError for a long prompt that cannot fit, before all of it is encoded.

    Its beginning tells: where that alone needs twice the positions of the model, the whole does not fit.
    """
    if not is_long(prompt, model):
        return
    most, size = model.spec.max_length, count_characters(prompt)
    if isinstance(prompt, str):
        text = prompt
    elif isinstance(prompt[0], int):
        raise LengthError(f"The prompt has {len(prompt)} tokens, the model has {most} positions.", param=field)
    else:
        text = text_of(prompt)
    needed = len(model.tokenizer.encode(text[: LONG * most]))
    if needed > 2 * most:
        rule = f"The prompt has {size} characters; the first {LONG * most} need {needed} tokens, the model has {most}"
        raise LengthError(f"{rule} positions.", hint="Shorten the prompt.", param=field)


def tokenize(body: TokenizeBody, model: Model) -> dict[str, Any]:
    """The tokens of a prompt or of messages, and the text of each."""
    content = body.content()
    check_size(content, model, "prompt" if body.messages is None else "messages")
    tokens = model.tokenizer.encode(content) if isinstance(content, str) else encode_chat(model, content)  # type: ignore[arg-type]
    size = {"count": len(tokens), "max_model_len": model.spec.max_length}
    return size | {"tokens": tokens, "token_strs": [model.tokenizer.piece(token) for token in tokens]}


def detokenize(tokens: list[int], model: Model) -> dict[str, Any]:
    """The text of tokens, special ones included."""
    most = LONG * model.spec.max_length
    if len(tokens) > most:
        raise LengthError(f"{len(tokens)} tokens are too many; at most {most} are allowed.", param="tokens")
    check_ids(tokens, model.spec.shape.vocab_size)
    return {"prompt": model.tokenizer.decode(tokens, skip_special=False)}


def build_options(asked: Asked, model: Model, settings: Settings) -> Options:
    """Options from the fields that were given, else the server's defaults, else those of ``starr.generate``.

    Where a temperature is given and no seed, one is drawn, so that clients who ask twice get two answers; the answer
    names it.
    """
    own = dict(asked.options)
    refuse_files(own)
    given = {"block_length": choose_block(model, settings, own), **settings.defaults, **own}
    if given.get("temperature", 0) > 0 and "seed" not in given:
        given["seed"] = secrets.randbelow(1 << 31)
    return Options(**given)


def choose_block(model: Model, settings: Settings, given: Mapping[str, Any]) -> int | None:
    """The block length of a request that names none: the server's, else the model's own, else one that streams.

    None leaves it to the model. A template of ``ice`` is one canvas.
    """
    if given.get("ice"):
        return None
    if settings.block_length is not None:
        return settings.block_length
    return None if model.spec.block_length or model.spec.habits.block_length else STREAMED


def refuse_files(given: dict[str, Any]) -> None:
    """Raise where a text form names a file of the server: as a whole, or in an option of the strategy.

    The strategy is parsed here, and nowhere again.
    """
    for name, value in given.items():
        if isinstance(value, str) and value.startswith("@") and name != "regex":
            raise InputError(f"{name} cannot be read from a file here.", hint="Write it out.", param=name)
    if "strategy" in given:
        chosen = given["strategy"] = strategy(given["strategy"])
        for name in sorted(chosen.files.intersection(set_options(chosen))):
            raise InputError(f"{chosen.name}: {name} cannot be read from a file here.", param="strategy")


def check_traced(rows: list[Request]) -> None:
    """Raise if the traces of all rows could become too large."""
    size = sum(row.length * row.step_limit for row in rows)
    if size > MOST_TRACED:
        raise InputError(
            f"A trace may have at most {MOST_TRACED} cells (positions times steps); this one could have {size}.",
            hint="Lower max_tokens, max_forwards or n.",
            param="trace",
        )
