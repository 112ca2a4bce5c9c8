"""From a body to rows: options, prompts and bounds, all checked before anything is queued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from starr.api import Options, Prompt, request_of
from starr.errors import InputError, did_you_mean
from starr.model.load import Model
from starr.request import Request, check_request, rule
from starr.server.protocol import ChatBody, CompletionBody, Decoding, InfillBody, plain
from starr.server.settings import Settings

PASSED = (
    *("strategy", "cache", "max_tokens", "block_length", "temperature", "top_p", "top_k", "seed"),
    *("max_forwards", "enforce", "guidance", "eos", "ice", "trace"),
)
MOST_CHOICES = 32
MOST_STOPS = 16
MOST_TRACED = 1 << 19  # cells: canvas positions times steps, over all rows of a request


class Missing(InputError):
    """No model of that name is here."""

    status = 404


@dataclass(frozen=True, slots=True)
class Plan:
    """What a body asks for."""

    requests: list[Request]
    stops: tuple[str, ...]
    timeout: float
    stream: bool
    include_usage: bool
    diffusing: bool
    logprobs: bool


def plan_of(body: Decoding, model: Model, settings: Settings) -> Plan:
    """Raise InputError, LengthError or Missing unless the body can be served."""
    check_model(body.model, model)
    rule("n", 1 if body.n is None else body.n, 1, MOST_CHOICES)
    options = options_of(body)
    rows = [request for prompt in prompts_of(body) for request in choices(model, prompt, options, body.n or 1)]
    if len(rows) > settings.max_queue:
        raise InputError(f"The request has {len(rows)} rows, the most is {settings.max_queue}.", param="prompt")
    if body.diffusing and not body.stream:
        raise InputError("diffusing needs stream.", hint="Frames are only sent in a stream.", param="diffusing")
    if body.trace:
        check_traced(rows)
    return Plan(
        requests=rows,
        stops=stops_of(body.stop),
        timeout=timeout_of(body, settings),
        stream=bool(body.stream),
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        diffusing=bool(body.diffusing),
        logprobs=wants_logprobs(body),
    )


def check_model(name: str | None, model: Model) -> None:
    if name is not None and name != model.name:
        raise Missing(f"There is no model {name!r}.", hint=did_you_mean(name, [model.name]), param="model")


def options_of(body: Decoding) -> Options:
    """Options from the fields that were given; the others keep the defaults of ``starr.generate``."""
    given: dict[str, Any] = {name: value for name in PASSED if (value := getattr(body, name)) is not None}
    if body.stop_rule is not None:
        given["stop"] = body.stop_rule
    for name in ("strategy", "cache", "ice", "stop"):
        if "@" in str(given.get(name, "")):
            raise InputError(f"{name} cannot be read from a file here.", hint="Write it out.", param=name)
    if isinstance(body, ChatBody) and body.max_completion_tokens is not None:
        given["max_tokens"] = body.max_completion_tokens
    if body.ignore_eos:
        given["eos"] = "never"
    return Options(**given, chat=isinstance(body, ChatBody), infill=isinstance(body, InfillBody))


def prompts_of(body: Decoding) -> Sequence[Prompt]:
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


def choices(model: Model, prompt: Prompt, options: Options, n: int) -> list[Request]:
    """``n`` rows of one prompt, with seeds that follow each other; every row is watched."""
    first = request_of(model, prompt, options, stream=True)
    rows = [replace(first, seed=first.seed + place) for place in range(n)]
    check_request(rows[-1], model)
    return rows


def cells(row: Request) -> int:
    """How large a row's trace may become."""
    return row.length * row.forward_limit


def check_traced(rows: list[Request]) -> None:
    size = sum(map(cells, rows))
    if size > MOST_TRACED:
        raise InputError(
            f"A trace may have {MOST_TRACED} cells (positions times steps), this one {size}.",
            hint="Lower max_tokens, max_forwards or n.",
            param="trace",
        )


def stops_of(stop: str | list[str] | None) -> tuple[str, ...]:
    found = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(found) > MOST_STOPS or not all(found):
        raise InputError(f"stop takes up to {MOST_STOPS} texts, none of them empty.", param="stop")
    return found


def timeout_of(body: Decoding, settings: Settings) -> float:
    if body.timeout is None:
        return settings.timeout
    rule("timeout", body.timeout, 0.0, settings.timeout, open_low=True)
    return body.timeout


def wants_logprobs(body: Decoding) -> bool:
    """Of the committed tokens; lists of other candidates are not kept."""
    if isinstance(body, ChatBody):
        rule("top_logprobs", body.top_logprobs or 0, 0, 1)
        if body.top_logprobs and not body.logprobs:
            raise InputError("top_logprobs needs logprobs.", param="top_logprobs")
        return bool(body.logprobs)
    if isinstance(body, CompletionBody) and body.logprobs is not None:
        rule("logprobs", body.logprobs, 0, 1)
        return True
    return False
