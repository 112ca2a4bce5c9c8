"""Half precision tried on this CPU: run in a child process, because on some machines the first product kills Python.

``python -m starr.model.trial bfloat16`` prints one JSON object: ``gains``, how many times faster than float32 a layer
is, by width, and ``even``: a row's result is the same, bit by bit, alone and in a batch. Numbers that are far from
those of float32 end it with exit code 3.
"""

from __future__ import annotations

import json
import sys
from time import process_time

import torch

from starr.model.network.shape import Shape
from starr.model.network.transformer import Transformer

WIDTHS = (256, 1024)
LENGTHS = (128, 41, 3)  # of the rows of the batch
ROUNDS = 4
NEAR = 0.1  # of the largest value
WRONG = 3  # exit code


def network(width: int, layers: int = 1) -> Transformer:
    """A layer of the package's own, with weights drawn from seed 0."""
    torch.manual_seed(0)
    shape = Shape(64, width, layers, heads=width // 64, kv_heads=width // 64, mlp_width=11 * width // 4)
    return Transformer(shape).eval().requires_grad_(False)


def even(dtype: torch.dtype) -> bool:
    """Whether rows are the same alone and in a batch; ends the process if they are wrong."""
    net, length = network(WIDTHS[0], layers=2), torch.tensor(LENGTHS)
    tokens = torch.arange(len(LENGTHS) * LENGTHS[0]).view(len(LENGTHS), -1) % 64
    columns = torch.arange(LENGTHS[0]).expand(len(LENGTHS), -1)
    wide = net(tokens[:1])
    net = net.to(dtype)
    batch = net.packed(tokens, columns < length[:, None], sum(LENGTHS), columns)
    if not (batch[0].float() - wide[0]).abs().max() <= NEAR * wide.abs().max():  # not-a-number is not near
        raise SystemExit(WRONG)
    alone = [net(tokens[row : row + 1, :size])[0] for row, size in enumerate(LENGTHS)]
    return all(torch.equal(states, batch[row, : len(states)]) for row, states in enumerate(alone))


def gain(dtype: torch.dtype, width: int) -> float:
    """How many times faster than float32: the best of some forwards of each, in turn, by CPU time of one thread."""
    tokens = torch.zeros(1, LENGTHS[0], dtype=torch.long)
    nets = (network(width), network(width).to(dtype))
    taken: list[list[float]] = [[], []]
    for turn in range(2 * (ROUNDS + 1)):
        began = process_time()
        nets[turn % 2](tokens)
        taken[turn % 2].append(process_time() - began)
    return min(taken[0][1:]) / max(1e-9, min(taken[1][1:]))


@torch.inference_mode()
def main(name: str) -> None:
    """Try the dtype ``name``."""
    torch.set_num_threads(1)
    dtype = getattr(torch, name)
    found = {"even": even(dtype), "gains": {str(width): round(gain(dtype, width), 2) for width in WIDTHS}}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
