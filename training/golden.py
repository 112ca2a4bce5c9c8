"""Writes what tests compare the bundled model with.

    python -m training.golden RUN/last.safetensors TOKENIZER OUT.json

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
from training.attention import trainable
from training.checkpoint import averaged
from training.tokenizer import MASK, render

POSITIONS = 3
COUNT = 5
CANVAS = 96


@torch.no_grad()
def logits(checkpoint: Path, tokenizer: Tokenizer) -> dict:
    """Logits of the first masked positions of one half-masked problem."""
    weights = averaged(checkpoint)
    net = trainable(weights.shape)
    net.load_state_dict(weights.state_dict())
    problem = word_problems.load()[0]
    tokens = tokenizer.encode(render(problem.prompt)).ids
    answer = tokenizer.encode(problem.answer).ids
    mask = tokenizer.token_to_id(MASK)
    row = tokens + [token if index % 2 else mask for index, token in enumerate(answer)]
    places = [index for index, token in enumerate(row) if token == mask][:POSITIONS]
    values = net.head(net(torch.tensor([row])))[0, places]
    return {"tokens": row, "places": places, "logits": [[round(v, 5) for v in line] for line in values.tolist()]}


def texts(folder: Path | None) -> list[dict]:
    """Ten problems, each with the text that one token per step gives."""
    model = starr.load(folder, dtype="float32")
    problems = word_problems.load()[:COUNT] + list_functions.load()[:COUNT]
    prompts = [problem.prompt for problem in problems]
    results = starr.generate(model, prompts, strategy="confidence", max_tokens=CANVAS)
    return [{"prompt": prompt, "text": result.text} for prompt, result in zip(prompts, results, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, default=None, help="the exported folder; the bundled model without it")
    options = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    content = {"canvas": CANVAS, **logits(options.checkpoint, tokenizer), "answers": texts(options.model)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
