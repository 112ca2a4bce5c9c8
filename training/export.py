"""Writes a checkpoint's averaged weights as a LLaDA folder.

    python -m training.export RUN/last.safetensors TOKENIZER OUT

The folder has config.json with LLaDA's keys, model.safetensors in bfloat16 with LLaDA's tensor names, and the
tokenizer's files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tokenizers import Tokenizer

from starr.model.export import save
from starr.model.layers import Shape
from starr.model.spec import ModelSpec
from training.checkpoint import averaged
from training.tokenizer import BOS, EOS, EOT, MASK

NAME = "starr-mini"


def specification(shape: Shape, tokenizer: Tokenizer) -> ModelSpec:
    eos, eot = tokenizer.token_to_id(EOS), tokenizer.token_to_id(EOT)
    mask, bos = tokenizer.token_to_id(MASK), tokenizer.token_to_id(BOS)
    return ModelSpec(NAME, "llada", shape, mask, (eos, eot), bos, eos, shift=False, max_length=shape.max_length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    net = averaged(options.checkpoint)
    tokenizer = Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    save(net, specification(net.shape, tokenizer), options.out, "bfloat16", tokenizer=options.tokenizer)
    for file in options.out.iterdir():
        file.chmod(0o644)
    size = sum(file.stat().st_size for file in options.out.iterdir()) / 1e6
    print(f"{sum(p.numel() for p in net.parameters()) / 1e6:.2f} M parameters, {size:.1f} MB -> {options.out}")


if __name__ == "__main__":
    main()
