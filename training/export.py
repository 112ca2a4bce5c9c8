"""Writes a checkpoint's averaged weights as a LLaDA folder; as Dream's with q/k/v biases, as SDAR's with normed heads.

    python -m training.export RUN/last.safetensors TOKENIZER OUT

The folder has config.json with the family's keys, model.safetensors in bfloat16 with its tensor names, and the
tokenizer's files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tokenizers import Tokenizer

from starr.model.files.convert import save
from starr.model.network.shape import Shape
from starr.model.spec import ModelSpec
from training.blocks import BLOCK
from training.checkpoint import averaged
from training.tokenizer import BOS, EOS, EOT, MASK

NAME = "starr-mini"
TOKENS = {
    "dream": {MASK: "<|mask|>", BOS: "<|beginoftext|>", EOT: "<|im_end|>"},
    "sdar": {MASK: "<|MASK|>", EOT: "<|im_end|>"},
}


def specification(shape: Shape, tokenizer: Tokenizer) -> ModelSpec:
    eos, eot = tokenizer.token_to_id(EOS), tokenizer.token_to_id(EOT)
    mask, bos = tokenizer.token_to_id(MASK), tokenizer.token_to_id(BOS)
    family = "dream" if shape.qkv_bias else "sdar" if shape.qk_norm else "llada"
    block = BLOCK if family == "sdar" else None
    return ModelSpec(NAME, family, shape, mask, (eos, eot), bos, eos, shape.qkv_bias, shape.max_length, block)


def rename_tokens(folder: Path, family: str) -> None:
    """The family's own texts for the special tokens that it has; ids stay."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        text = (folder / name).read_text(encoding="utf8")
        for ours, theirs in TOKENS.get(family, {}).items():
            text = text.replace(ours, theirs)
        (folder / name).write_text(text, encoding="utf8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    net = averaged(options.checkpoint)
    tokenizer = Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    spec = specification(net.shape, tokenizer)
    save(net, spec, options.out, "bfloat16", tokenizer=options.tokenizer)
    rename_tokens(options.out, spec.family)
    for file in options.out.iterdir():
        file.chmod(0o644)
    size = sum(file.stat().st_size for file in options.out.iterdir()) / 1e6
    print(f"{sum(p.numel() for p in net.parameters()) / 1e6:.2f} M parameters, {size:.1f} MB -> {options.out}")


if __name__ == "__main__":
    main()
