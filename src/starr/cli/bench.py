"""``starr bench``: how fast strategies and caches decode on this machine, against the bare forwards they need."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import Decode, Json, option_flags
from starr.cli.race import split_forms
from starr.cli.report import dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError, counted
from starr.options import Options

if TYPE_CHECKING:
    from starr.decode.trace import Generation
    from starr.model.load import Model

HEAD = ("strategy", "cache", "rows", "forwards", "positions", "seconds", "ms/forward", "tokens/second", "overhead")
REPEATS = 5


@dataclass(frozen=True, kw_only=True)
class BenchOptions(Decode):
    """The flags of ``starr bench``."""

    strategies: Annotated[str, typer.Option(help="Text forms separated by commas, or all.")] = (
        "confidence,threshold,starr"
    )
    caches: Annotated[str, typer.Option(help="Text forms separated by commas.")] = "none"
    rows: Annotated[str, typer.Option(help="Batch sizes separated by commas.")] = "1,8"
    json: Json = False
    decoding: Options = option_flags(leave=("strategy", "cache"))


def add(app: typer.Typer) -> None:
    """Add ``starr bench``."""
    verb(app, "bench", BenchOptions, bench)


def bench(options: BenchOptions) -> None:
    """Time strategies and caches on this machine.

    Decodes bundled problems; overhead is a run's time over that of as many bare forwards of its shape.
    """
    import starr

    caches = [starr.cache(text) for text in split_forms(options.caches)]
    forms = [(starr.strategy(text), cache) for text in split_forms(options.strategies) for cache in caches]
    sizes = read_sizes(options.rows)
    decoding = options.parse()
    model = options.load()
    lines = []
    for size in sizes:
        prompts = problems(size)
        bare = bare_forward(model, prompts, decoding.max_tokens)
        for strategy, cache in forms:
            chosen = replace(decoding, strategy=strategy, cache=cache)
            note(f"{strategy.name}, {cache.name}, {counted(size, 'row')}", options.quiet)
            results, seconds = timed(model, prompts, chosen)
            lines.append(line(results, seconds, bare))
    keys = [name.replace("/", "_per_") for name in HEAD]
    print(dump([dict(zip(keys, row, strict=True)) for row in lines]) if options.json else table(HEAD, lines))


def read_sizes(text: str) -> list[int]:
    """The batch sizes of ``--rows``."""
    sizes = text.split(",")
    if not all(size.strip().isdecimal() and int(size) > 0 for size in sizes):
        raise InputError(f"--rows must be whole numbers above 0 separated by commas, got {text!r}.", param="rows")
    return [int(size) for size in sizes]


def problems(count: int) -> list[str]:
    """One problem repeated, so that rows have one shape and end together."""
    from starr.evals.tasks import word_problems

    return [word_problems.load()[0].prompt] * count


def bare_forward(model: Model, prompts: list[str], max_tokens: int) -> float:
    """Median seconds of one forward with logits over the canvas, for these prompts, and nothing else."""
    import torch

    length = len(model.tokenizer.chat([{"role": "user", "content": prompts[0]}])) + max_tokens
    tokens = torch.full((len(prompts), length), model.spec.mask_id, device=model.device)
    times: list[float] = []
    with torch.inference_mode():
        for _ in range(REPEATS + 1):
            start = time.perf_counter()
            model.net.head(model.net(tokens)[:, -max_tokens:])
            times.append(time.perf_counter() - start)
    return sorted(times[1:])[REPEATS // 2]


def timed(model: Model, prompts: list[str], decoding: Options) -> tuple[list[Generation], float]:
    """A run of all prompts together, after a short one that warms up, and its seconds."""
    import starr

    size = len(prompts)
    starr.generate(model, prompts, batch_size=size, **replace(decoding, max_forwards=2).keywords())
    start = time.perf_counter()
    results = starr.generate(model, prompts, batch_size=size, **decoding.keywords())
    return results, time.perf_counter() - start


def line(results: list[Generation], seconds: float, bare: float) -> tuple[Any, ...]:
    """One line of the table: cost, speed, and the run's time over that of bare forwards."""
    forwards = max(result.stats.forwards for result in results)
    tokens = sum(result.stats.tokens for result in results)
    return (
        results[0].strategy,
        results[0].cache,
        len(results),
        forwards,
        sum(result.stats.positions for result in results),
        round(seconds, 3),
        round(1000 * seconds / forwards, 2),
        round(tokens / seconds),
        round(seconds / (forwards * bare), 2),
    )
