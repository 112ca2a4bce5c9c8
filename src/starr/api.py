"""``generate``, ``stream`` and ``infill``: prompts in, generations out, over one engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, overload

from starr.engine import Engine
from starr.errors import InputError, did_you_mean
from starr.events import Event
from starr.model.load import Model
from starr.prompting.ice import Ice
from starr.prompting.ice import ice as make_ice
from starr.prompting.infill import infill_layout
from starr.prompting.layout import lay_out
from starr.query import CACHES, Cache
from starr.request import MANY, Request, Sampling, check_ids, check_length, rule
from starr.stop import StopRule, stop_rules
from starr.strategy import strategy as make_strategy
from starr.strategy.base import Strategy
from starr.trace import Generation

Prompt = str | Sequence[Mapping[str, str]] | Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``generate`` and ``stream`` take besides model and prompt; the same words are flags and JSON fields."""

    strategy: str | Strategy = "starr"
    cache: str | Cache = "none"
    max_tokens: int = 128
    block_length: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    max_forwards: int | None = None
    enforce: str = "safe"
    guidance: float = 0.0
    eos: str = "normal"
    stop: str | StopRule | Sequence[str | StopRule] = ()  # rules that end a row early
    ice: str | Ice | None = None  # in-place chain of thought
    infill: bool = False  # the prompt is text with [MASK:n] holes; they alone are decoded
    chat: bool | None = None  # None: apply the chat template to plain text where the model has one
    trace: bool = False


def options_from(given: Mapping[str, Any]) -> Options:
    """Options from keyword arguments; an unknown name is an error with a suggestion."""
    known = [f.name for f in fields(Options)]
    for name in given:
        if name not in known:
            raise InputError(f"Unknown option {name!r}.", hint=did_you_mean(name, known), param=name)
    return Options(**given)


def prompt_tokens(model: Model, prompt: Prompt, chat: bool | None) -> tuple[list[int], str]:
    """The tokens of a prompt, and its text for display."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise InputError("The prompt must not be empty.", hint="Give at least one word.", param="prompt")
        if model.tokenizer.has_chat if chat is None else chat:
            return model.tokenizer.chat([{"role": "user", "content": prompt}]), prompt
        start = [] if model.spec.bos_id is None else [model.spec.bos_id]
        return start + model.tokenizer.encode(prompt), prompt
    if not prompt:
        raise InputError("The prompt must not be empty.", hint="Give at least one message or token.", param="prompt")
    tokens = [token for token in prompt if isinstance(token, int)]
    messages = [dict(message) for message in prompt if isinstance(message, Mapping)]
    if tokens and not messages:
        check_ids(tokens, model.spec.shape.vocab_size)
        return tokens, model.tokenizer.decode(tokens)
    return model.tokenizer.chat(messages), str(messages[-1].get("content", ""))


def request_of(model: Model, prompt: Prompt, options: Options, *, stream: bool = False) -> Request:
    """A row with ``max_tokens`` masks behind the prompt, a template in their place, or a text with holes."""
    rule("max_tokens", options.max_tokens, 1, MANY)
    if options.infill:
        return infill_request(model, prompt, options, stream)
    tokens, text = prompt_tokens(model, prompt, options.chat)
    check_length(len(tokens), options.max_tokens, model.spec.max_length)
    common = row_options(model, options) | {"start": len(tokens), "prompt": text, "stream": stream}
    if options.ice is not None:
        template = make_ice(options.ice)
        canvas, answer = template.layout(model.tokenizer.encode, model.spec.mask_id, options.max_tokens)
        common |= {"ends": False, "rules": (*common["rules"], template.rule(answer))}
    else:
        canvas = lay_out([options.max_tokens], model.tokenizer.encode, model.spec.mask_id)
    return Request(tokens + canvas.tokens, [False] * len(tokens) + canvas.masked, **common)


def infill_request(model: Model, prompt: Prompt, options: Options, stream: bool) -> Request:
    """A row whose canvas is the whole text: no end-of-text is proposed in its holes, and none ends it."""
    if not isinstance(prompt, str) or options.ice is not None:
        raise InputError("Infilling takes a text with [MASK:n] holes, and no ice.", param="prompt")
    spec = model.spec
    canvas = infill_layout(prompt, model.tokenizer.encode, spec.mask_id, spec.max_length)
    before = [] if spec.bos_id is None else [spec.bos_id]
    common = row_options(model, replace(options, eos="never")) | {"prompt": prompt, "stream": stream, "ends": False}
    return Request(before + canvas.tokens, [False] * len(before) + canvas.masked, len(before), **common)


def row_options(model: Model, options: Options) -> dict[str, Any]:
    """The options that go into a Request as they are."""
    chosen = make_strategy(options.strategy)
    return {
        "strategy": chosen.bind(model) if hasattr(chosen, "bind") else chosen,
        "cache": CACHES.parse(options.cache),
        "sampling": Sampling(options.temperature, options.top_p, options.top_k, options.guidance, options.eos),
        "block_length": options.block_length,
        "seed": options.seed,
        "max_forwards": options.max_forwards,
        "enforce": options.enforce,
        "rules": stop_rules(options.stop),
        "trace": options.trace,
    }


@overload
def generate(model: Model, prompt: str, *, batch_size: int = ..., **options: Any) -> Generation: ...
@overload
def generate(model: Model, prompt: Sequence[Any], *, batch_size: int = ..., **options: Any) -> Any: ...


def generate(model: Model, prompt: Any, *, batch_size: int = 8, **options: Any) -> Any:
    """Decode one prompt, or a list of prompts in order (see ``Options`` for the keywords).

    A prompt is text, a list of {"role", "content"} messages, or a list of token ids.
    """
    parsed = options_from(options)
    many = not isinstance(prompt, str) and bool(prompt) and not isinstance(prompt[0], int | Mapping)
    prompts = list(prompt) if many else [prompt]
    rule("batch_size", batch_size, 1, MANY)
    requests = [request_of(model, p, parsed) for p in prompts]
    results = run_all(model, requests, batch_size)
    return results if many else results[0]


def infill(model: Model, text: Any, **options: Any) -> Any:
    """Fill the ``[MASK:n]`` holes of a text, or of each of a list; ``text`` of the result is the whole text.

    ``max_tokens`` and ``chat`` play no part; the other keywords are those of ``generate``.
    """
    return generate(model, text, infill=True, **options)


def run_all(model: Model, requests: Sequence[Request], batch_size: int) -> list[Generation]:
    """Decode requests together and give their results in order."""
    engine = Engine(model, max_rows=batch_size)
    order = {engine.add(request): place for place, request in enumerate(requests)}
    results: dict[int, Generation] = {}
    while engine.busy:
        for event in engine.step():
            if event.generation is not None:
                results[order[event.id]] = event.generation
    return [results[place] for place in range(len(requests))]


def stream(model: Model, prompt: Prompt, **options: Any) -> Iterator[Event]:
    """Decode one prompt step by step; the last event is done and carries the generation."""
    request = request_of(model, prompt, options_from(options), stream=True)
    return run_stream(model, request)


def run_stream(model: Model, request: Request) -> Iterator[Event]:
    engine = Engine(model, max_rows=1)
    engine.add(request)
    while engine.busy:
        yield from engine.step()
