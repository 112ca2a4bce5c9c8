"""What the loop costs on top of the model: `python -m benchmarks.loop` prints two tables, JSON with --out FILE.

1. A STaRR run's time divided by (forwards x a bare forward of the same shape), at B = 1 and B = 8.
2. Hidden states to token, confidence and own-token probability over a large vocabulary, divided by the matrix product
   alone; beside it the float64 softmax that is common elsewhere.
Both sides of a ratio are taken alternately in one run and compared by their medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

import starr
from benchmarks.report import machine, table
from starr.api import Options, build_request
from starr.decode.engine import Engine
from starr.decode.propose import ProposalRequest, propose
from starr.evals.tasks import word_problems


def loop_ratio(model, rows: int, tokens: int, repeats: int) -> dict:
    """Time of whole runs, and of as many bare forwards (trunk and head over the canvas) on the same canvases."""
    prompts = [p.prompt for p in word_problems.load()[:rows]]
    requests = [build_request(model, p, Options(strategy="starr", max_tokens=tokens, eos="never")) for p in prompts]
    longest = max(len(r.tokens) for r in requests)
    canvas = torch.tensor([r.tokens + [0] * (longest - len(r.tokens)) for r in requests])
    attend = torch.arange(longest)[None] < torch.tensor([[len(r.tokens)] for r in requests])
    ratios, steps = [], 0
    for _ in range(repeats + 1):  # the first warms up and is left out
        engine = Engine(model, max_rows=rows)
        for request in requests:
            engine.add(request)
        began, steps = time.perf_counter(), 0
        while len(engine.batch.rows) == rows or engine.batch.waiting:
            engine.step()
            steps += 1
        run = time.perf_counter() - began
        began = time.perf_counter()
        with torch.inference_mode():
            for _ in range(steps):
                hidden = model.net(canvas, attend=attend if rows > 1 else None)
                model.net.head(hidden[:, -tokens:])
        ratios.append(run / (time.perf_counter() - began))
    return {"rows": rows, "positions": longest, "forwards": steps, "ratio": statistics.median(ratios[1:]), "n": repeats}


def head_ratio(positions: int, width: int, vocab: int, repeats: int) -> dict:
    """Confidence over ``positions`` x ``vocab`` against the matrix product alone and against a float64 softmax."""
    weight, hidden = torch.randn(vocab, width) / width**0.5, torch.randn(positions, width)
    held = torch.zeros(positions, dtype=torch.int64)

    def product(x):
        return torch.nn.functional.linear(x, weight)

    def float64():
        logits = product(hidden)
        probability = logits.to(torch.float64).softmax(-1)
        return logits.argmax(-1), probability.max(-1).values

    def ours():
        return propose(product, hidden, ProposalRequest(0, held), vocab)

    times = {name: [] for name in ("product", "ours", "float64")}
    with torch.inference_mode():
        for _ in range(repeats):
            for name, call in (("product", lambda: product(hidden)), ("ours", ours), ("float64", float64)):
                began = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - began)
    median = {name: statistics.median(values) for name, values in times.items()}
    return {
        "positions": positions,
        "width": width,
        "vocabulary": vocab,
        "ours": median["ours"] / median["product"],
        "float64": median["float64"] / median["product"],
        "n": repeats,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    model = starr.load()
    loops = [loop_ratio(model, rows, args.tokens, args.repeats) for rows in (1, 8)]
    heads = [head_ratio(256, args.width, 126_464, args.repeats)]
    print(table("STaRR run / (forwards x bare forward)", loops))
    print(table("confidence step / matrix product", heads))
    if args.out:
        args.out.write_text(json.dumps({"machine": machine(), "loop": loops, "head": heads}, indent=1))


if __name__ == "__main__":
    main()
