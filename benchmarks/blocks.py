"""What exact K/V save a block-causal model: seconds and positions per token with ``exact`` and with ``none``.

    python -m benchmarks.blocks --model FOLDER --canvas 128 512 1024 --out blocks.json

``none`` computes everything up to the open block at every step, as the released loops without a cache do. Both make
the same tokens. Without ``--model`` a random network of the bundled size is used: its texts mean nothing, its times
do. The last columns are milliseconds per token in the first and in the last quarter of the canvas with ``exact``:
they differ by what attention over more keys costs.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

import starr
from starr.model.load import Model, load
from starr.model.network.transformer import Transformer

STRATEGY = "threshold:origin=sdar,tau=0.85"


def random_model(block: int, context: int) -> Model:
    """The bundled model's sizes with random weights and block-causal attention."""
    bundled = load()
    torch.manual_seed(0)
    shape = replace(bundled.spec.shape, max_length=context)
    spec = replace(bundled.spec, shape=shape, block_length=block, max_length=context, name="random")
    return replace(bundled, spec=spec, net=Transformer(shape).eval().requires_grad_(False), name="random")


def quarters(result: starr.Generation, tokens: int) -> tuple[float, float]:
    """Milliseconds per token in the first and in the last quarter of the canvas."""
    assert result.trace is not None
    ends = {step.window[0]: step.seconds for step in result.trace.steps}  # the last step of each window
    starts = sorted(ends)
    first = next(s for s in starts if s >= tokens // 4)
    last = max(s for s in starts if s <= 3 * tokens // 4)
    final = result.trace.steps[-1].seconds
    return 1e3 * ends[first] / first, 1e3 * (final - ends[last]) / (tokens - last)


def measure(model: Model, prompt: list[int], tokens: int, repeats: int) -> dict[str, object]:
    """One row of the table."""
    row: dict[str, object] = {"canvas": tokens}
    texts = []
    for cache in ("none", "exact"):
        options = {"strategy": STRATEGY, "cache": cache, "max_tokens": tokens, "eos": "never", "trace": True}
        runs = [starr.generate(model, prompt, **options) for _ in range(repeats)]
        stats = runs[0].stats
        seconds = median(run.stats.seconds for run in runs)
        row[cache] = {
            "seconds_per_token": seconds / tokens,
            "positions_per_token": stats.positions / tokens,
            "forwards": stats.forwards,
        }
        if cache == "exact":
            row["first_quarter_ms"], row["last_quarter_ms"] = quarters(runs[0], tokens)
        texts.append(runs[0].tokens)
    row["same_tokens"] = texts[0] == texts[1]
    row["times_faster"] = row["none"]["seconds_per_token"] / row["exact"]["seconds_per_token"]  # type: ignore[index]
    row["times_fewer_positions"] = row["none"]["positions_per_token"] / row["exact"]["positions_per_token"]  # type: ignore[index]
    return row


def main(arguments: list[str] | None = None) -> list[dict[str, object]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a block-causal model; without it random weights")
    parser.add_argument("--canvas", type=int, nargs="+", default=[128, 512, 1024])
    parser.add_argument("--block", type=int, default=8, help="of the random network")
    parser.add_argument("--prompt", type=int, default=40, help="tokens")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    context = max(given.canvas) + given.prompt + given.block
    model = load(given.model) if given.model else random_model(given.block, context)
    prompt = [3 + i % 100 for i in range(given.prompt)]
    rows = [measure(model, prompt, tokens, given.repeats) for tokens in given.canvas]
    print("canvas  exact ms/token  none ms/token  faster  fewer positions  first quarter  last quarter  same")
    for row in rows:
        exact, none = (1e3 * row[cache]["seconds_per_token"] for cache in ("exact", "none"))  # type: ignore[index]
        print(
            f"{row['canvas']:6}  {exact:14.2f}  {none:13.2f}  {row['times_faster']:6.2f}"
            f"  {row['times_fewer_positions']:15.2f}"
            f"  {row['first_quarter_ms']:13.2f}  {row['last_quarter_ms']:12.2f}  {row['same_tokens']}"
        )
    if given.out:
        given.out.write_text(json.dumps(rows, indent=2) + "\n")
    return rows


if __name__ == "__main__":
    main()
