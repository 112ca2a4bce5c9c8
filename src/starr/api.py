"""``generate``, ``stream`` and ``infill``: prompts in, generations out, over one engine."""

from __future__ import annotations

import asyncio
import inspect
import json
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from starr.decode.caches import CACHES
from starr.decode.choose.answers import answers
from starr.decode.choose.questions import asks_within, questions_behind, questions_within
from starr.decode.engine import Engine
from starr.decode.extras.bias import read_bias
from starr.decode.extras.constraints.compile import compile_for
from starr.decode.extras.constraints.expression import ConstraintSpec, parse_constraint, read_choices
from starr.decode.prompts.given import Prompt as Prompt
from starr.decode.prompts.given import read_one, read_prompts
from starr.decode.prompts.ice import ICES
from starr.decode.prompts.prepare import add_suffix, build_canvas, build_infill, encode_prompt
from starr.decode.prompts.tools import Toolbox, read_toolbox
from starr.decode.request import Request, build_row
from starr.decode.result import Event
from starr.decode.stops import stop_rules
from starr.decode.strategies.base import STRATEGIES, Strategy
from starr.decode.text import stop_strings
from starr.decode.trace import Generation, Generations
from starr.errors import InputError
from starr.model.load import Model
from starr.optional import need
from starr.options import (
    PYTHON,
    AnyOptions,
    BatchOptions,
    ManyOptions,
    Options,
    ResolvedOptions,
    describe_options,
    ours,
)

Keywords = ParamSpec("Keywords")
Given = TypeVar("Given")
Made = TypeVar("Made")

PARSERS: dict[str, Callable[[Any], Any]] = {
    "strategy": STRATEGIES.parse,
    "cache": CACHES.parse,
    "stop": stop_strings,
    "stop_rule": stop_rules,
    "ice": ICES.parse,
}
"""The options that have a text form, each with its one parser. A member passes through unchanged."""
MODELS_OWN = ("strategy", "cache", "block_length")  # None is the model's own, at every door


def takes(
    options: Callable[Keywords, Options],
) -> Callable[[Callable[Concatenate[Model, Given, ...], Made]], Callable[Concatenate[Model, Given, Keywords], Made]]:
    """Give a function the fields of a class of options as its keywords, for type checkers, editors and ``help``."""

    def with_keywords(
        work: Callable[Concatenate[Model, Given, ...], Made],
    ) -> Callable[Concatenate[Model, Given, Keywords], Made]:
        own = [p for p in inspect.signature(work).parameters.values() if p.kind is not p.VAR_KEYWORD]
        shown: Any = options
        more = inspect.signature(options).parameters.values()
        work.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
        if work.__doc__:
            work.__doc__ = f"{inspect.cleandoc(work.__doc__)}\n\nKeywords:\n\n{describe_options(shown)}\n"
        return work

    return with_keywords


def strategy(form: str | Strategy, **options: Any) -> Strategy:
    """A strategy from its text form, e.g. ``starr:temporal_window=5,responsive=false``; ``@FILE`` reads a preset.

    Options may be keywords, too: ``strategy("threshold", tau=0.9)``.
    """
    text = read_preset(Path(form[1:])) if isinstance(form, str) and form.startswith("@") else form
    return STRATEGIES.parse(text, **options)


def read_preset(path: Path) -> str:
    """The text form stored in a preset file, as written by ``starr tune``."""
    try:
        text = json.loads(path.read_text())["strategy"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"Preset file {path} must be JSON with a key 'strategy' ({type(error).__name__}).", param="strategy"
        ) from None
    return str(text)


def read_schema(path: Path) -> str:
    """The text of a schema file."""
    try:
        return path.read_text(encoding="utf8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"json_schema cannot be read from {path}: {error}.", param="json_schema") from None


FILE_READERS: dict[str, Callable[[Path], Any]] = {"strategy": read_preset, "json_schema": read_schema}


def read_files(options: AnyOptions) -> AnyOptions:
    """Read every option that is given as ``@FILE``. Options of strangers, as a server has them, never come here."""
    given = {name: getattr(options, name) for name in FILE_READERS}
    files = {name: Path(v[1:]) for name, v in given.items() if isinstance(v, str) and v.startswith("@")}
    return replace(options, **{name: FILE_READERS[name](path) for name, path in files.items()}) if files else options


def parse_options(options: AnyOptions) -> AnyOptions:
    """Put members in place of text forms, before there is a model. Constraints are checked, and compiled later."""
    read_constraint(options, read_toolbox(options.tools, options.tool_choice))
    return replace(options, **parse_members(options.keywords()))


def parse_members(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that have a text form, parsed. None stays None where it has a meaning."""
    nullable = (*MODELS_OWN, "ice")
    return {
        name: None if given[name] is None and name in nullable else parse(given[name])
        for name, parse in PARSERS.items()
    }


def read_constraint(options: Options, toolbox: Toolbox | None) -> ConstraintSpec | None:
    """What the answer must match; None is any text."""
    calls = None if toolbox is None else toolbox.constraint()
    asked = parse_constraint(options.regex, options.json_schema, options.choices, calls)
    if asked is not None:
        need("grammar", asked.kind)
    return asked


def resolve(options: Options, model: Model) -> ResolvedOptions:
    """Resolve options for a model: parse text forms, take the model's own members where none is named."""
    given, toolbox = options.keywords(), read_toolbox(options.tools, options.tool_choice)
    toolbox = None if toolbox is None else replace(toolbox, marks=model.tokenizer.call_marks)
    asked = read_constraint(options, toolbox)
    given |= {name: getattr(model.spec.habits, name) for name in MODELS_OWN if given[name] is None}
    if options.ice is not None:
        given["block_length"] = options.block_length  # a template is one canvas: blocks must be asked for
    given |= parse_members(given)
    given["strategy"] = given["strategy"].bind(model)
    if options.infill:
        given["eos"] = "never"
    if options.logit_bias is not None:
        given["logit_bias"] = read_bias(options.logit_bias, model.spec.shape.vocab_size)
    if asked is not None and model.tokenizer.spaced:
        rule = f"{model.name} has a WordPiece tokenizer, whose tokens are not the bytes of a text."
        raise InputError(rule, hint="Decode it without a constraint.", param=asked.kind)
    constraint = None if asked is None else compile_for(model, asked)
    return ResolvedOptions(**given, toolbox=toolbox, constraint=constraint)


def check_model(model: Any, prompt: Any = None) -> None:
    """Raise unless this is a loaded model; its name alone, or the prompt in its place, are common mistakes."""
    if not isinstance(model, Model):
        hint = f"Write starr.load({str(model)!r})." if isinstance(model, str | Path) else "Write starr.load()."
        hint = "The model comes first, then the prompt." if isinstance(prompt, Model) else hint
        raise InputError(f"A model is what starr.load gives, got {model!r:.60}.", hint=hint, param="model")


def build_requests(
    model: Model,
    prompts: Sequence[Prompt],
    options: Options,
    *,
    stream: bool = False,
    candidates: int = 0,
    suffix: str = "",
) -> list[Request]:
    """Build one checked row per prompt. The options are resolved once and travel unchanged into every row.

    A row has ``max_tokens`` masks after the prompt, a template in their place, or a text with holes. ``candidates`` is
    the number of likely tokens kept for every commit, ``suffix`` a text after the canvas.
    """
    chosen = resolve(replace(options, eos="never") if suffix else options, model)
    prepare = build_infill if chosen.infill else build_canvas
    rows = []
    for prompt in prompts:
        prepared = prepare(model, prompt, chosen)
        prepared = add_suffix(model, prepared, chosen, suffix) if suffix else prepared
        rows.append(build_row(model, prepared, chosen, stream=stream, candidates=candidates))
    return rows


def build_request(model: Model, prompt: Prompt, options: Options, *, stream: bool = False) -> Request:
    """Build the checked row of one prompt."""
    return build_requests(model, [prompt], options, stream=stream)[0]


@overload
@takes(BatchOptions)
def generate(model: Model, prompt: Prompt, **options: Any) -> Generation: ...  # type: ignore[overload-overlap]
@overload
@takes(BatchOptions)
def generate(model: Model, prompt: Iterable[Prompt], **options: Any) -> Generations: ...
@overload
@takes(ManyOptions)
def generate(model: Model, prompt: Prompt | Iterable[Prompt], **options: Any) -> Generations: ...


@takes(ManyOptions)
def generate(model: Model, prompt: Any, **options: Any) -> Any:
    """Decode one prompt, or a list of prompts in order.

    A prompt is text, a list of {"role", "content"} messages, or a list of token ids. One prompt gives a ``Generation``;
    a list, ``n`` or ``seeds`` give a list of them, all answers to the first prompt first.
    """
    check_model(model, prompt)
    given, (prompts, many) = read_files(read_keywords(ManyOptions, options)), read_prompts(prompt)
    seeds = given.list_seeds()
    requests = [row.change(seed=seed) for row in build_requests(model, prompts, given) for seed in seeds]
    warn_of_copies(requests)
    results = run_all(model, requests, given.batch_size, progress=given.progress)
    return results if many or given.several else results[0]


def read_keywords(kind: type[AnyOptions], given: Mapping[str, Any]) -> AnyOptions:
    """Options from keywords. Raise for one that is an option of a strategy or cache, with its text form."""
    known = [field.name for field in fields(kind)]
    for name in given:
        if name not in known and not ours(name, PYTHON):
            from starr.decode.catalogue import find_option

            if found := find_option(name, given[name], given.get("strategy"), given.get("cache")):
                hint = f'It is an option of a {found.kind}: write {found.kind}="{found.form}".'
                raise InputError(f"Unknown option {name!r}.", hint=hint, param=name)
    return kind.of(given)


def warn_of_copies(requests: Sequence[Request]) -> None:
    """Warn where tokens are drawn and two rows are the same, so that they give the same text."""
    drawn = [(tuple(row.tokens), row.options.seed) for row in requests if row.options.temperature > 0]
    if len(set(drawn)) < len(drawn):
        said = "The same prompt with the same seed gives the same text again; n or seeds give several."
        warnings.warn(said, stacklevel=3)


@overload
@takes(BatchOptions)
def infill(model: Model, text: str, **options: Any) -> Generation: ...  # type: ignore[overload-overlap]
@overload
@takes(BatchOptions)
def infill(model: Model, text: Iterable[str], **options: Any) -> Generations: ...
@overload
@takes(ManyOptions)
def infill(model: Model, text: str | Iterable[str], **options: Any) -> Generations: ...


@takes(ManyOptions)
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
    check_model(model, prompt)
    many = not isinstance(choices, str) and bool(choices) and not isinstance(choices[0], str)
    lists = [read_choices(each) for each in (choices if many else [choices])]
    if many and not isinstance(prompt, str):
        raise InputError("Several questions need a text with [MASK] holes.", param="prompt")
    if isinstance(prompt, str) and (many or asks_within(prompt)):
        found = answers(model, *questions_within(model, prompt, lists))
        return found if many else found[0]
    return answers(model, *questions_behind(model, encode_prompt(model, read_one(prompt), chat)[0], lists[0]))[0]


def run_all(model: Model, requests: Sequence[Request], batch_size: int, *, progress: bool = False) -> Generations:
    """Decode requests together and give their results in order."""
    engine = Engine(model, max_rows=batch_size)
    order = [engine.add(request) for request in requests]
    results: dict[int, Generation] = {}
    with bar(len(requests), progress) as advance:
        while engine.busy:
            for event in engine.step():
                if event.generation is not None:
                    results[event.id] = event.generation
                    advance()
    return Generations(results[id] for id in order)


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
    check_model(model, prompt)
    given, (prompts, many) = read_files(read_keywords(Options, options)), read_prompts(prompt)
    if many:
        raise InputError("stream takes one prompt.", hint="Call it once for each.", param="prompt")
    return run_stream(model, build_request(model, prompts[0], given, stream=True))


def run_stream(model: Model, request: Request) -> Iterator[Event]:
    """The events of one row."""
    engine = Engine(model, max_rows=1)
    engine.add(request)
    while engine.busy:
        yield from engine.step()


@takes(ManyOptions)
async def agenerate(model: Model, prompt: Any, **options: Any) -> Any:
    """``generate`` in a thread of its own, so that an event loop keeps running."""
    return await asyncio.to_thread(lambda: generate(model, prompt, **options))


@takes(Options)
async def astream(model: Model, prompt: Any, **options: Any) -> AsyncIterator[Event]:
    """``stream`` with each step in a thread of its own; leaving the loop stops decoding."""
    events = stream(model, prompt, **options)
    while (event := await asyncio.to_thread(next, events, None)) is not None:
        yield event
