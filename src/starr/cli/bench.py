"""``starr bench``: how fast strategies and caches decode on this machine, against the bare forwards they need."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from starr.cli.flags import Json, Place
from starr.cli.race import split_forms
from starr.cli.report import dump, note, table
from starr.cli.verb import verb
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model
    from starr.trace import Generation

HEAD = ("strategy", "cache", "rows", "forwards", "positions", "seconds", "ms/forward", "tokens/second", "overhead")
REPEATS = 5


@dataclass(frozen=True, kw_only=True)
class Options(Place):
    strategies: Annotated[str, typer.Option(help="Text forms separated by commas, or all.")] = (
        "confidence,threshold,starr"
    )
    caches: Annotated[str, typer.Option(help="Text forms separated by commas.")] = "none"
    rows: Annotated[str, typer.Option(help="Batch sizes separated by commas.")] = "1,8"
    max_tokens: Annotated[int, typer.Option(help="Length of the canvas.")] = 128
    block_length: Annotated[int | None, typer.Option(help="Decode in blocks of this length.")] = None
    json: Json = False


def add(app: typer.Typer) -> None:
    verb(app, "bench", Options, bench)


def bench(options: Options) -> None:
    """Time strategies and caches on this machine.

    Decodes bundled problems; overhead is a run's time over that of as many bare forwards of its shape.
    """
    import starr

    caches = [starr.cache(text) for text in split_forms(options.caches)]
    forms = [(starr.strategy(text), cache) for text in split_forms(options.strategies) for cache in caches]
    sizes = read_sizes(options.rows)
    model = options.load()
    lines = []
    for size in sizes:
        prompts = problems(size)
        bare = bare_forward(model, prompts, options.max_tokens)
        for strategy, cache in forms:
            arguments = {"strategy": strategy, "cache": cache, "block_length": options.block_length}
            note(f"{strategy.name}, {cache.name}, {size} rows", options.quiet)
            results, seconds = timed(model, prompts, arguments | {"max_tokens": options.max_tokens, "batch_size": size})
            lines.append(line(results, seconds, bare))
    keys = [name.replace("/", "_per_") for name in HEAD]
    print(dump([dict(zip(keys, row, strict=True)) for row in lines]) if options.json else table(HEAD, lines))


def read_sizes(text: str) -> list[int]:
    sizes = text.split(",")
    if not all(size.strip().isdecimal() and int(size) > 0 for size in sizes):
        raise InputError(f"--rows must be whole numbers above 0 separated by commas, got {text!r}.", param="rows")
    return [int(size) for size in sizes]


def problems(count: int) -> list[str]:
    """One problem repeated, so that rows have one shape and end together."""
    from starr.evals import word_problems

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


def timed(model: Model, prompts: list[str], arguments: dict[str, Any]) -> tuple[list[Generation], float]:
    """A run after a short one that warms up, and its seconds."""
    import starr

    starr.generate(model, prompts, **(arguments | {"max_forwards": 2}))
    start = time.perf_counter()
    results = starr.generate(model, prompts, **arguments)
    return results, time.perf_counter() - start


def line(results: list[Generation], seconds: float, bare: float) -> tuple[Any, ...]:
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
