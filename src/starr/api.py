"""``generate``, ``stream`` and ``infill``: prompts in, generations out, over one engine."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from starr.decode.caches import CACHES, Cache
from starr.decode.choose.answers import answers
from starr.decode.choose.questions import asks_within, questions_behind, questions_within
from starr.decode.engine import Engine
from starr.decode.extras.constraints.compiled import constraint_for
from starr.decode.extras.constraints.expression import choices_text, wanted
from starr.decode.prompts.given import Prompt as Prompt
from starr.decode.prompts.given import is_many
from starr.decode.prompts.ice import ice as make_ice
from starr.decode.prompts.infill import infill_layout
from starr.decode.prompts.layout import Layout, lay_out
from starr.decode.request import Request, Sampling, check_ids, check_length, in_blocks
from starr.decode.result import Event
from starr.decode.stops import stop_rules
from starr.decode.stops.base import StopRule
from starr.decode.strategies.base import Strategy
from starr.decode.strategies.members import STRATEGIES
from starr.decode.strings import stop_strings, stopped
from starr.decode.trace import Generation, Generations
from starr.errors import InputError
from starr.model.load import Model
from starr.optional import need
from starr.options import AnyOptions, BatchOptions, Options

Keywords = ParamSpec("Keywords")
Given = TypeVar("Given")
Made = TypeVar("Made")


def takes(
    options: Callable[Keywords, Options],
) -> Callable[[Callable[Concatenate[Model, Given, ...], Made]], Callable[Concatenate[Model, Given, Keywords], Made]]:
    """Give a function the fields of a class of options as its keywords, for type checkers, editors and ``help``."""

    def with_keywords(
        work: Callable[Concatenate[Model, Given, ...], Made],
    ) -> Callable[Concatenate[Model, Given, Keywords], Made]:
        own = [p for p in inspect.signature(work).parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = inspect.signature(options).parameters.values()
        work.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
        return work

    return with_keywords


def strategy(form: str | Strategy) -> Strategy:
    """A strategy from its text form, e.g. ``starr:temporal_window=5,responsive=false``; ``@FILE`` reads a preset."""
    return STRATEGIES.parse(read_preset(Path(form[1:])) if isinstance(form, str) and form.startswith("@") else form)


def read_preset(path: Path) -> str:
    """The text form stored in a preset file, as written by ``starr tune``."""
    try:
        text = json.loads(path.read_text())["strategy"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"Preset file {path} must be JSON with a key 'strategy' ({type(error).__name__}).", param="strategy"
        ) from None
    return str(text)


def resolved(options: AnyOptions) -> AnyOptions:
    """The options with members in place of their text forms, each checked; constraints are checked when compiled.

    A strategy may be read from a file here, so that options from strangers (a server's) must not come this way.
    """
    schema = read_schema(options.json_schema)
    asked = wanted(options.regex, schema, options.choices)
    if asked is not None:
        need("grammar", asked.kind)
    return replace(
        options,
        strategy=None if options.strategy is None else strategy(options.strategy),
        cache=None if options.cache is None else CACHES.parse(options.cache),
        stop=stop_strings(options.stop),
        stop_rule=stop_rules(options.stop_rule),
        ice=None if options.ice is None else make_ice(options.ice),
        json_schema=schema,
    )


def for_model(options: AnyOptions, model: Model) -> AnyOptions:
    """The options, with the model's own strategy and cache where none was named."""
    return replace(options, strategy=own_strategy(options, model), cache=own_cache(options, model))


def own_strategy(options: Options, model: Model) -> Strategy:
    """The strategy asked for, or that of the model's family."""
    return STRATEGIES.parse(model.spec.habits.strategy if options.strategy is None else options.strategy)


def own_cache(options: Options, model: Model) -> Cache:
    """The cache asked for, or that of the model's family."""
    return CACHES.parse(model.spec.habits.cache if options.cache is None else options.cache)


def read_schema(given: Any) -> Any:
    """A schema as it was given; ``@FILE`` is read."""
    if not isinstance(given, str) or not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"json_schema cannot be read from {given[1:]}: {error}.", param="json_schema") from None


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


@dataclass(frozen=True, slots=True)
class Laid:
    """A prompt and the canvas after it."""

    prompt: list[int]
    canvas: Layout
    text: str  # the prompt, for display
    ends: bool = True  # an end-of-text ends the row
    rules: tuple[StopRule, ...] = ()  # those that the canvas itself needs


def check_model(model: Any) -> None:
    """Raise unless this is a loaded model; its name alone is a common mistake."""
    if not isinstance(model, Model):
        hint = f"Write starr.load({str(model)!r})." if isinstance(model, str | Path) else "Write starr.load()."
        raise InputError(f"A model is what starr.load gives, got {model!r:.60}.", hint=hint, param="model")


def request_of(model: Model, prompt: Prompt, options: Options, *, stream: bool = False) -> Request:
    """A row with ``max_tokens`` masks after the prompt, a template in their place, or a text with holes."""
    if options.infill:
        return make_request(model, holed(model, prompt, options), replace(options, eos="never"), stream)
    return make_request(model, laid(model, prompt, options), options, stream)


def laid(model: Model, prompt: Prompt, options: Options) -> Laid:
    """The prompt, and a canvas of masks or of an ``ice`` template after it."""
    tokens, text = prompt_tokens(model, prompt, options.chat)
    check_length(len(tokens), options.max_tokens, model.spec.max_length)
    encode, mask = model.tokenizer.encode, model.spec.mask_id
    if options.ice is None:
        return Laid(tokens, lay_out([options.max_tokens], encode, mask), text)
    template = make_ice(options.ice)
    canvas, answer = template.layout(encode, mask, options.max_tokens)
    return Laid(tokens, canvas, text, ends=False, rules=(template.rule(answer),))


def holed(model: Model, prompt: Prompt, options: Options) -> Laid:
    """A canvas that is the whole text; it does not end at an end-of-text."""
    if not isinstance(prompt, str) or options.ice is not None:
        raise InputError("Infilling takes a text with [MASK:n] holes and cannot be used with ice.", param="prompt")
    spec = model.spec
    found = infill_layout(prompt, model.tokenizer.encode, spec.mask_id, spec.max_length)
    canvas = Layout(found.tokens + spec.behind, found.masked + [False] * len(spec.behind))
    return Laid(spec.before, canvas, prompt, ends=False)


def make_request(model: Model, place: Laid, options: Options, stream: bool) -> Request:
    """The row that decodes a canvas with these options; a constraint is compiled here, unless it is known."""
    asked = wanted(options.regex, options.json_schema, options.choices)
    if asked is not None and model.tokenizer.spaced:
        rule = f"{model.name} has a WordPiece tokenizer, whose tokens are not the bytes of a text."
        raise InputError(rule, hint="Decode it without a constraint.", param="regex")
    request = Request(
        tokens=place.prompt + place.canvas.tokens,
        masked=[False] * len(place.prompt) + place.canvas.masked,
        start=len(place.prompt),
        strategy=own_strategy(options, model).bind(model),
        cache=own_cache(options, model),
        sampling=Sampling(options.temperature, options.top_p, options.top_k, options.guidance, options.eos),
        block_length=options.block_length,
        seed=options.seed,
        max_forwards=options.max_forwards,
        enforce=options.enforce,
        max_revocations=options.max_revocations,
        smoothing=options.smoothing,
        trace=options.trace,
        stream=stream,
        ends=place.ends,
        rules=(*stop_rules(options.stop_rule), *place.rules),
        prompt=place.text,
        constraint=None if asked is None else constraint_for(model, asked),
    )
    return in_blocks(request, model.spec)


@overload
@takes(BatchOptions)
def generate(model: Model, prompt: str, **options: Any) -> Generation: ...
@overload
@takes(BatchOptions)
def generate(model: Model, prompt: Sequence[Any], **options: Any) -> Any: ...


@takes(BatchOptions)
def generate(model: Model, prompt: Any, **options: Any) -> Any:
    """Decode one prompt, or a list of prompts in order (see ``starr.options.Options`` for the keywords).

    A prompt is text, a list of {"role", "content"} messages, or a list of token ids.
    """
    check_model(model)
    parsed = resolved(BatchOptions.of(options))
    many = is_many(prompt)
    prompts = list(prompt) if many else [prompt]
    stops = stop_strings(parsed.stop)
    requests = [request_of(model, p, parsed, stream=bool(stops)) for p in prompts]
    results = run_all(model, requests, parsed.batch_size, stops, progress=parsed.progress)
    return results if many else results[0]


@overload
@takes(BatchOptions)
def infill(model: Model, text: str, **options: Any) -> Generation: ...
@overload
@takes(BatchOptions)
def infill(model: Model, text: Sequence[Any], **options: Any) -> Any: ...


@takes(BatchOptions)
def infill(model: Model, text: Any, **options: Any) -> Any:
    """Fill the ``[MASK:n]`` holes of a text, or of each of a list; ``text`` of the result is the whole text.

    ``max_tokens`` and ``chat`` have no effect; the other keywords are those of ``generate``.
    """
    return generate(model, text, **options | {"infill": True})


def choose(model: Model, prompt: Prompt, choices: Any, *, chat: bool | None = None) -> Any:
    """Which of the choices the model finds most probable as the answer to a prompt, and how probable each is.

    One forward. In a text with ``[MASK]`` holes, ``choices`` is a list of lists, one for each hole, and so is the
    result; all holes are read in the same forward, each as if the others were open. A text with one hole takes its
    choices alone, too; ``[[MASK]]`` is no hole.
    """
    check_model(model)
    many = not isinstance(choices, str) and bool(choices) and not isinstance(choices[0], str)
    lists = [json.loads(choices_text(each)) for each in (choices if many else [choices])]
    if many and not isinstance(prompt, str):
        raise InputError("Several questions need a text with [MASK] holes.", param="prompt")
    if isinstance(prompt, str) and (many or asks_within(prompt)):
        found = answers(model, *questions_within(model, prompt, lists))
        return found if many else found[0]
    return answers(model, *questions_behind(model, prompt_tokens(model, prompt, chat)[0], lists[0]))[0]


def run_all(
    model: Model, requests: Sequence[Request], batch_size: int, stops: Sequence[str] = (), *, progress: bool = False
) -> Generations:
    """Decode requests together and give their results in order."""
    engine = Engine(model, max_rows=batch_size)
    order = {engine.add(request): place for place, request in enumerate(requests)}
    results: dict[int, Generation] = {}
    with bar(len(requests), progress) as advance:
        while engine.busy:
            for event in engine.step():
                found = ended(engine, event, requests[order[event.id]], model, stops)
                if found.generation is not None:
                    results[order[event.id]] = found.generation
                    advance()
    return Generations(results[place] for place in range(len(requests)))


def ended(engine: Engine, event: Event, request: Request, model: Model, stops: Sequence[str]) -> Event:
    """The event up to a stop string; that row is decoded no further, unless its trace must be complete."""
    found = stopped(event, request, model, stops) if stops else event
    if found.done and not event.done:
        if request.trace:
            return event
        engine.cancel(event.id)
    return found


@contextmanager
def bar(total: int, shown: bool) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error, if asked for; yields what to call after each result."""
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as screen:
        task = screen.add_task("prompts", total=total)
        yield lambda: screen.advance(task)


@takes(Options)
def stream(model: Model, prompt: Prompt, **options: Any) -> Iterator[Event]:
    """Decode one prompt step by step; the last event is done and carries the generation."""
    check_model(model)
    parsed = resolved(Options.of(options))
    if is_many(prompt):
        raise InputError("stream takes one prompt.", hint="Call it once for each.", param="prompt")
    return run_stream(model, request_of(model, prompt, parsed, stream=True), stop_strings(parsed.stop))


def run_stream(model: Model, request: Request, stops: Sequence[str] = ()) -> Iterator[Event]:
    """The events of one row."""
    engine = Engine(model, max_rows=1)
    engine.add(request)
    shown = ""
    while engine.busy:
        for event in engine.step():
            found = ended(engine, event, request, model, stops)
            yield replace(found, delta=found.text[len(shown) :])
            shown = found.text


@takes(BatchOptions)
async def agenerate(model: Model, prompt: Any, **options: Any) -> Any:
    """``generate`` in a thread of its own, so that an event loop keeps running."""
    return await asyncio.to_thread(lambda: generate(model, prompt, **options))


@takes(Options)
async def astream(model: Model, prompt: Any, **options: Any) -> AsyncIterator[Event]:
    """``stream`` with each step in a thread of its own; leaving the loop stops decoding."""
    events = stream(model, prompt, **options)
    while (event := await asyncio.to_thread(next, events, None)) is not None:
        yield event
