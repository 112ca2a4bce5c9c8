"""What exact K/V save a block-causal model: ``python -m benchmarks.blocks --out docs/results``.

Seconds and positions per token with ``exact`` beside ``none``, which computes everything up to the open block at every
step, as the released loops without a cache do. Both make the same tokens. The model is ``bundled-blocks`` where the
package has it, else a random network of the same size, whose texts mean nothing and whose times do. Canvases are
filled to their end, beyond the length that the model was trained for if need be.

A step's cost must not grow with the number of earlier blocks by more than attention over their keys: milliseconds of
a step in the first and in the last quarter of the canvas, and attention's own at as many keys.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import torch

import starr
from benchmarks.stored import Stored
from starr.api import Options, build_request
from starr.decode.engine import Engine
from starr.evals.run.runs import fingerprint
from starr.evals.tasks import word_problems
from starr.model.files.hub import bundled_folder
from starr.model.load import Model, load
from starr.model.network.attention import attention
from starr.model.network.transformer import Transformer
from starr.research.reproduce import context
from starr.research.reproduce.result import table

NAME = "bundled-blocks"
STRATEGY = "threshold:origin=sdar,tau=0.85"
NOTES = (
    "ms/token: processor time of one thread over the tokens of the canvas, median of the repeats. times: none over "
    "exact. positions: all that were computed, the prompt's among them.",
    "first and last ms: a step with exact in the first and in the last quarter of the canvas, medians. attention ms: "
    "how much longer the attention of a step takes, alone, at the keys of the last quarter than at those of the first.",
)


def random_model(block: int) -> Model:
    """The bundled model's sizes with random weights and block-causal attention."""
    bundled = load(threads=1)
    torch.manual_seed(0)
    net = Transformer(bundled.spec.shape).to(bundled.dtype).eval().requires_grad_(False)
    return replace(bundled, spec=replace(bundled.spec, block_length=block), net=net, name="random")


def with_room(model: Model, positions: int) -> Model:
    """The model for this many positions, whatever length it was trained for."""
    return replace(model, spec=replace(model.spec, max_length=max(positions, model.spec.max_length)))


def decode(model: Model, prompt: list[int], tokens: int, cache: str) -> tuple[starr.Generation, list[float]]:
    """A full canvas, and the milliseconds of processor time of each of its steps."""
    engine = Engine(model, max_rows=1)
    options = Options(strategy=STRATEGY, cache=cache, max_tokens=tokens, eos="never", trace=True)
    engine.add(build_request(model, prompt, options))
    spent: list[float] = []
    while True:
        began = process_time()
        events = engine.step()
        spent.append(1e3 * (process_time() - began))
        if events and events[0].generation:
            return events[0].generation, spent


def quarters(made: starr.Generation, spent: list[float], tokens: int) -> tuple[float, float]:
    """Median milliseconds of a step in the first and in the last quarter of the canvas, without prefill and result."""
    assert made.trace is not None
    steps = [(step.window[0], taken) for step, taken in zip(made.trace.steps, spent, strict=True)][1:-1]
    first = [taken for start, taken in steps if start < tokens / 4]
    last = [taken for start, taken in steps if start >= 3 * tokens / 4]
    return median(first), median(last)


@torch.inference_mode()
def attention_ms(model: Model, keys: int, repeats: int = 30) -> float:
    """Milliseconds of the attention of all layers for one block over this many keys, median.

    As in a step, the keys are a slice of a buffer: whole blocks and the slot of padding.
    """
    shape, block = model.spec.shape, model.spec.block_length or 1
    keys = keys // block * block + 1
    q = torch.randn(1, shape.heads, block, shape.head_width).to(model.dtype)
    room = torch.randn(shape.layers, 1, shape.heads, 2 * keys, shape.head_width).to(model.dtype)
    kept = room[:, :, :, :keys]
    seen = torch.ones(1, 1, block, keys, dtype=torch.bool)
    taken = []
    for _ in range(repeats):
        began = process_time()
        for layer in kept:
            attention(q, layer, layer, seen)
        taken.append(1e3 * (process_time() - began))
    return median(taken)


def measure(model: Model, prompt: list[int], tokens: int, repeats: int) -> dict[str, Any]:
    """One row of the table; the two caches take turns."""
    pairs = [[decode(model, prompt, tokens, cache) for cache in ("none", "exact")] for _ in range(repeats)]
    (none, _), (exact, spent) = pairs[-1]
    slow, quick = (median(sum(pair[place][1]) / tokens for pair in pairs) for place in (0, 1))
    first, last = quarters(exact, spent, tokens)
    few, many = (len(prompt) + tokens * eighths // 8 for eighths in (1, 7))  # keys in the middle of both quarters
    return {
        "canvas": tokens,
        "forwards": exact.stats.forwards,
        "exact ms/token": quick,
        "none ms/token": slow,
        "times less time": slow / quick,
        "exact positions/token": exact.stats.positions / tokens,
        "none positions/token": none.stats.positions / tokens,
        "times fewer positions": none.stats.positions / exact.stats.positions,
        "same tokens": exact.tokens == none.tokens,
        "first ms": first,
        "last ms": last,
        "attention ms": attention_ms(model, many) - attention_ms(model, few),
    }


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a block-causal model; bundled-blocks without it, or random weights")
    parser.add_argument("--dtype", help="what is fastest here without it")
    parser.add_argument("--canvas", type=int, nargs="+", default=[128, 512, 1024])
    parser.add_argument("--block", type=int, default=4, help="of the random network")
    parser.add_argument("--problem", type=int, default=0, help="which of the packaged word problems is the prompt")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for blocks.json and blocks.md")
    given = parser.parse_args(arguments)
    name = given.model or (NAME if bundled_folder(NAME).exists() else None)
    model = load(name, dtype=given.dtype, threads=1) if name else random_model(given.block)
    prompt = model.tokenizer.chat([{"role": "user", "content": word_problems.load()[given.problem].prompt}])
    model = with_room(model, len(prompt) + max(given.canvas) + (model.spec.block_length or 0))
    rows = [measure(model, prompt, tokens, given.repeats) for tokens in given.canvas]
    print(table(rows))
    if given.out:
        stored = Stored("blocks", f"Exact K/V of a block-causal model ({model.name})", "blocks.md", NOTES)
        shown = f"{model.name} (weights {fingerprint(model)}, {str(model.dtype).removeprefix('torch.')})"
        stored.write(given.out, context("python -m benchmarks.blocks", shown, f"word problem {given.problem}"), rows)
    return rows


if __name__ == "__main__":
    main()
