"""The expert layer against a dense layer with the same active parameters, in the same run.

    python -m benchmarks.experts --out experts.json

Tokens are those of one forward: a block, a few rows of blocks, a prompt. An expert layer reads more weights than the
dense one as soon as tokens choose different experts: with E experts of which K are chosen, T tokens use E (1 - (1 -
K/E)^T) of them on average. ``read`` is that number over K.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn

from starr.model.network.experts import Experts
from starr.model.network.layers import MLP
from starr.model.network.shape import Routing


def milliseconds(layer: nn.Module, x: Tensor, repeats: int) -> float:
    """Median time of one call, after two that do not count."""
    times = []
    with torch.inference_mode():
        for _ in range(repeats + 2):
            began = perf_counter()
            layer(x)
            times.append(perf_counter() - began)
    return 1e3 * median(times[2:])


def measure(width: int, routing: Routing, tokens: int, repeats: int) -> dict[str, float]:
    """One row of the table."""
    torch.manual_seed(0)
    shared = MLP(width, routing.shared_width) if routing.shared_width else None
    experts = Experts(width, routing, shared)
    dense = MLP(width, routing.chosen * routing.width + routing.shared_width)
    x = torch.randn(1, tokens, width)
    used = routing.experts * (1 - (1 - routing.chosen / routing.experts) ** tokens)
    found = {"experts_ms": milliseconds(experts, x, repeats), "dense_ms": milliseconds(dense, x, repeats)}
    ratio = found["experts_ms"] / found["dense_ms"]
    return {"tokens": tokens, **found, "ratio": ratio, "read": used / routing.chosen}


def main(arguments: list[str] | None = None) -> list[dict[str, float]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("--chosen", type=int, default=8)
    parser.add_argument("--expert-width", type=int, default=128)
    parser.add_argument("--router", choices=("softmax", "sigmoid"), default="sigmoid")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 32, 256, 1024])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    sigmoid = given.router == "sigmoid"
    grouped = {"bias": True, "groups": 8, "open_groups": 4, "shared_width": given.expert_width} if sigmoid else {}
    routing = Routing(given.experts, given.chosen, given.expert_width, given.router, True, **grouped)
    rows = [measure(given.width, routing, tokens, given.repeats) for tokens in given.tokens]
    print("tokens  experts ms  dense ms  ratio  weights read")
    for row in rows:
        print(
            f"{row['tokens']:6}  {row['experts_ms']:10.3f}  {row['dense_ms']:8.3f}"
            f"  {row['ratio']:5.2f}  {row['read']:12.2f}"
        )
    if given.out:
        given.out.write_text(json.dumps(rows, indent=2) + "\n")
    return rows


if __name__ == "__main__":
    main()
