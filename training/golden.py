"""Writes what tests compare a bundled model with.

    python -m training.golden RUN/last.safetensors TOKENIZER OUT.json [--model bundled-dream]

Logits come from the trainer's own network (its attention, its names) with the averaged weights rounded to bfloat16 as
they are shipped; texts come from the public interface, one token per step, for ten fixed problems on a canvas of 96.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer

import starr
from starr.evals.tasks import list_functions, word_problems
from starr.model.network.masks import block_mask
from training.attention import trainable
from training.checkpoint import averaged
from training.export import specification
from training.tokenizer import MASK, render

POSITIONS = 3
COUNT = 5
CANVAS = 96


@torch.no_grad()
def logits(checkpoint: Path, tokenizer: Tokenizer) -> dict:
    """Logits of the first masked positions of one half-masked problem; those of Dream are not moved."""
    weights = averaged(checkpoint)
    net = trainable(weights.shape)
    net.load_state_dict(weights.state_dict())
    problem = word_problems.load()[0]
    tokens = tokenizer.encode(render(problem.prompt)).ids
    answer = tokenizer.encode(problem.answer).ids
    mask = tokenizer.token_to_id(MASK)
    row = tokens + [token if index % 2 else mask for index, token in enumerate(answer)]
    places = [index for index, token in enumerate(row) if token == mask][:POSITIONS]
    block = specification(net.shape, tokenizer).block_length
    seen = None if block is None else block_mask(len(row), block)
    values = net.head(net(torch.tensor([row]), None, seen))[0, places]
    return {"tokens": row, "places": places, "logits": [[round(v, 5) for v in line] for line in values.tolist()]}


def texts(name: str | None) -> list[dict]:
    """Ten problems, each with the text that one token per step gives."""
    model = starr.load(name, dtype="float32")
    problems = word_problems.load()[:COUNT] + list_functions.load()[:COUNT]
    prompts = [problem.prompt for problem in problems]
    results = starr.generate(model, prompts, strategy="confidence", max_tokens=CANVAS)
    return [{"prompt": prompt, "text": result.text} for prompt, result in zip(prompts, results, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default=None, help="a folder, bundled-dream or bundled-blocks; bundled without it")
    options = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    content = {"canvas": CANVAS, **logits(options.checkpoint, tokenizer), "answers": texts(options.model)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
