"""From a body to rows: options, prompts and bounds, all checked before anything is queued."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from starr.api import Prompt, build_requests
from starr.decode.request import Request
from starr.decode.strategies import strategy
from starr.errors import InputError, did_you_mean
from starr.model.load import Model
from starr.named import check_range, set_options
from starr.options import Options
from starr.server.http.formats import form_of
from starr.server.http.protocol import ChatBody, CompletionBody, Decoding, InfillBody, plain
from starr.server.settings import Settings

MOST_CHOICES = 32
MOST_STOPS = 16
MOST_LIKELY = 20  # as OpenAI
MOST_TRACED = 1 << 19  # cells: canvas positions times steps, over all rows of a request


class Missing(InputError):
    """There is no model of that name."""

    status = 404


@dataclass(frozen=True, slots=True)
class ParsedBody:
    """What a body asks for."""

    requests: list[Request]
    timeout: float
    stream: bool
    include_usage: bool
    diffusing: bool
    logprobs: int | None  # how many likely tokens come with each; None is no logprobs at all


def parse_body(body: Decoding, model: Model, settings: Settings) -> ParsedBody:
    """Raise InputError, LengthError or Missing unless the body can be served."""
    check_model(body.model, model)
    check_range("n", 1 if body.n is None else body.n, 1, MOST_CHOICES)
    prompts = prompts_of(body)
    count = len(prompts) * (body.n or 1)
    if count > settings.max_queue:  # before anything is built
        raise InputError(f"The request has {count} rows; at most {settings.max_queue} are allowed.", param="prompt")
    own_blocks = model.spec.block_length is not None  # a block-causal model has blocks of its own
    defaults = {name: value for name, value in settings.defaults.items() if not (own_blocks and name == "block_length")}
    options = options_of(body, defaults)
    logprobs = wanted_logprobs(body)
    suffix = getattr(body, "suffix", None) or ""
    built = build_requests(model, prompts, options, stream=True, candidates=logprobs or 0, suffix=suffix)
    rows = [row.change(seed=options.seed + place) for row in built for place in range(body.n or 1)]
    if body.diffusing and not body.stream:
        raise InputError("diffusing needs stream.", hint="Frames are only sent in a stream.", param="diffusing")
    if options.trace or logprobs:
        check_traced(rows)
    return ParsedBody(
        requests=rows,
        timeout=timeout_of(body, settings),
        stream=bool(body.stream),
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        diffusing=bool(body.diffusing),
        logprobs=logprobs,
    )


def check_model(name: str | None, model: Model) -> None:
    """Raise unless the model is the one that is served."""
    if name is not None and name != model.name:
        raise Missing(f"There is no model {name!r}.", hint=did_you_mean(name, [model.name]), param="model")


def options_of(body: Decoding, defaults: Mapping[str, Any] = MappingProxyType({})) -> Options:
    """Options from the fields that were given, else the server's defaults, else those of ``starr.generate``.

    Where a temperature is given and no seed, one is drawn, so that clients who ask twice get two answers; the answer
    names it.
    """
    given = body.given()
    refuse_files(given)
    if isinstance(body, ChatBody) and body.max_completion_tokens is not None:
        given["max_tokens"] = body.max_completion_tokens
    if body.ignore_eos:
        given["eos"] = "never"
    given |= form_of(body) | {"stop": stops_of(body.stop)}
    given = {**defaults, **given}
    if given.get("temperature", 0) > 0 and "seed" not in given:
        given["seed"] = secrets.randbelow(1 << 31)
    return Options(**given, chat=isinstance(body, ChatBody), infill=isinstance(body, InfillBody))


def refuse_files(given: dict[str, Any]) -> None:
    """Raise where a text form names a file of the server: as a whole, or in an option of the strategy."""
    for name, value in given.items():
        if isinstance(value, str) and value.startswith("@") and name != "regex":
            raise InputError(f"{name} cannot be read from a file here.", hint="Write it out.", param=name)
    if "strategy" in given:
        chosen = given["strategy"] = strategy(given["strategy"])
        for name in sorted(chosen.files.intersection(set_options(chosen))):
            raise InputError(f"{chosen.name}: {name} cannot be read from a file here.", param="strategy")


def prompts_of(body: Decoding) -> Sequence[Prompt]:
    """The prompts of a body; a chat and an infill have one."""
    if isinstance(body, ChatBody):
        return [plain(body.messages)]
    if isinstance(body, InfillBody):
        return [body.text]
    assert isinstance(body, CompletionBody)
    prompt = body.prompt
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        return [prompt]
    if not prompt:
        raise InputError("The prompt must not be empty.", param="prompt")
    return prompt  # type: ignore[return-value]


def cells(row: Request) -> int:
    """How large a row's trace may become."""
    return row.length * row.step_limit


def check_traced(rows: list[Request]) -> None:
    """Raise if the traces of all rows could become too large."""
    size = sum(map(cells, rows))
    if size > MOST_TRACED:
        raise InputError(
            f"A trace may have at most {MOST_TRACED} cells (positions times steps); this one could have {size}.",
            hint="Lower max_tokens, max_forwards or n.",
            param="trace",
        )


def stops_of(stop: str | list[str] | None) -> tuple[str, ...]:
    """The stop strings, none of them empty."""
    found = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(found) > MOST_STOPS or not all(found):
        raise InputError(f"stop takes up to {MOST_STOPS} texts, none of them empty.", param="stop")
    return found


def timeout_of(body: Decoding, settings: Settings) -> float:
    """Seconds until the request is given up: what was asked for, within the server's own bound."""
    if body.timeout is None:
        return settings.timeout
    check_range("timeout", body.timeout, 0.0, settings.timeout, whole=False, open_low=True)
    return body.timeout


def wanted_logprobs(body: Decoding) -> int | None:
    """How many likely tokens are listed beside each token of the answer; None where no logprobs are wanted."""
    if isinstance(body, ChatBody):
        check_range("top_logprobs", body.top_logprobs or 0, 0, MOST_LIKELY)
        if body.top_logprobs and not body.logprobs:
            raise InputError("top_logprobs needs logprobs.", param="top_logprobs")
        return (body.top_logprobs or 0) if body.logprobs else None
    if isinstance(body, CompletionBody) and body.logprobs is not None:
        check_range("logprobs", body.logprobs, 0, MOST_LIKELY)
        return body.logprobs
    return None
