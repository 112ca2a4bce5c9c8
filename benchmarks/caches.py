"""What a forward costs by the share of positions it queries: `python -m benchmarks.caches`, JSON with --out FILE.

Prompts of 128, 512 and 1,024 random tokens and a canvas of 128 masks after them, one row. A forward recomputes the
last positions of the row, whose K/V go into the buffer, and attends over all of it; 1.0 recomputes everything. The
shares are timed in turn, many times over, and compared by their medians; "none" is the forward without a buffer.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median

import torch

import starr
from benchmarks.report import machine, table
from starr.decode.canvas import columns_where
from starr.decode.forward import partial, whole
from starr.model.network.transformer import KVBuffer

SHARES = (1.0, 0.5, 0.25, 0.125)
PROMPTS = (128, 512, 1024)
LIMIT = 0.45  # of a full forward, for a quarter of the positions at the longest prompt


def forwards(model, prompt: int, canvas: int):
    """Functions that run one forward each, by share; "none" is without a buffer."""
    net, size = model.net, prompt + canvas
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(3, model.spec.shape.vocab_size, (1, size + 1), generator=generator)
    tokens[:, prompt:] = model.spec.mask_id
    length, index = torch.tensor([size]), torch.arange(size + 1)[None]
    buffer = KVBuffer.empty(net.shape, 1, size + 1, net.embed.weight)

    def run(share: float):
        count = round(size * share)
        where = columns_where((index >= size - count) & (index < size), count)
        wanted = where.index[:, -canvas:]
        return lambda: partial(net, tokens, length, where, buffer, wanted, None, size)

    run(1.0)()  # fills the buffer
    none = {"none": lambda: whole(net, tokens, length, [size], index[:, prompt:size], None)}
    return none | {str(share): run(share) for share in SHARES}


def measure(model, prompt: int, canvas: int, repeats: int) -> list[dict]:
    """Median milliseconds of every share, and their ratio to a full forward."""
    calls = forwards(model, prompt, canvas)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 1):  # the first round warms up
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if repeat:
                times[name].append(time.perf_counter() - began)
    full = median(times["1.0"])
    rows = []
    for name, found in times.items():
        positions = prompt + canvas if name == "none" else round((prompt + canvas) * float(name))
        ms, ratio = 1e3 * median(found), median(found) / full
        rows.append({"prompt": prompt, "share": name, "positions": positions, "ms": ms, "of full": ratio, "n": repeats})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder or a hub id; the bundled model if not given")
    parser.add_argument("--canvas", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    model = starr.load(args.model)
    with torch.inference_mode():
        rows = [row for prompt in PROMPTS for row in measure(model, prompt, args.canvas, args.repeats)]
    print(table("seconds per forward by share of positions queried", rows))
    quarter = next(row["of full"] for row in rows if row["prompt"] == PROMPTS[-1] and row["share"] == "0.25")
    verdict = f"{quarter:.3f} of a full forward, {'within' if quarter <= LIMIT else 'over'} {LIMIT}"
    print(f"A quarter of the positions at a prompt of {PROMPTS[-1]}: {verdict}.")
    if args.out:
        args.out.write_text(json.dumps({"machine": machine(), "limit": LIMIT, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
