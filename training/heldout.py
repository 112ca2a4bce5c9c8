"""Held-out accuracy while training: a plain threshold decode, per task and kind.

Deliberately small and independent of the engine: the full table of the model card comes from ``training.evaluate``.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from tokenizers import Tokenizer

from starr.evals.tasks import grids, lines, list_functions, word_problems
from starr.model.network.masks import block_mask
from starr.model.network.transformer import Transformer
from training.blocks import BLOCK
from training.tokenizer import EOS, MASK, render


@torch.no_grad()
def decode(
    model: Transformer, tokenizer: Tokenizer, prompts: list[str], canvas: int, threshold: float, form: str
) -> tuple[list[str], float]:
    """Texts and mean forwards; commits ``confidence > threshold``, at least the best (lower position on a tie).

    A block-causal model (``sdar``) commits in the first block that has masks.
    """
    mask, eos = tokenizer.token_to_id(MASK), tokenizer.token_to_id(EOS)
    texts, forwards = [], 0
    for prompt in prompts:
        ids = tokenizer.encode(render(prompt)).ids
        row = torch.tensor([ids + [mask] * canvas])
        block, seen = torch.arange(row.shape[1]) // BLOCK, block_mask(row.shape[1], BLOCK)
        while (row == mask).any():
            forwards += 1
            states = model(row, None, seen if form == "sdar" else None)
            states = states.roll(1, dims=1) if form == "dream" else states
            confidence, proposal = model.head(states)[..., : tokenizer.get_vocab_size()].softmax(-1).max(-1)
            closed = row != mask
            if form == "sdar":
                closed |= block > block[(row[0] == mask).nonzero()[0]]
            confidence = confidence.masked_fill(closed, -1.0)
            commit = confidence > threshold
            commit[0, confidence.argmax()] = True
            row = torch.where(commit, proposal, row)
        answer = row[0, len(ids) :].tolist()
        texts.append(tokenizer.decode(answer[: answer.index(eos)] if eos in answer else answer))
    return texts, forwards / len(prompts)


def check(model: Transformer, tokenizer: Tokenizer, count: int, form: str = "llada") -> dict[str, object]:
    """What the training log records now and then, on the test split's generators (not the fixed test sets).

    Per task and kind the share of right answers and, where the task says what is well formed, of both.
    """
    scores: dict[str, dict[str, float]] = {}
    forwards: dict[str, float] = {}
    samples: dict[str, str] = {}
    for module, each, canvas in (
        (word_problems, 4 * count, 128),
        (list_functions, 8, 96),
        (lines, 40, 32),
        (grids, 16, 32),
    ):
        problems = list(module.generate(seed=1, count=each, split="test"))
        texts, mean = decode(model, tokenizer, [problem.prompt for problem in problems], canvas, 0.9, form)
        hits: dict[str, list[bool]] = defaultdict(list)
        for problem, text in zip(problems, texts, strict=True):
            fine = not hasattr(module, "formed") or module.formed(problem, text)
            hits[problem.kind].append(fine and module.grade(problem, text))
        scores[module.TASK] = {kind: round(sum(each) / len(each), 3) for kind, each in hits.items()}
        forwards[module.TASK], samples[module.TASK] = round(mean, 2), texts[-1]
    return {"scores": scores, "forwards": forwards, "samples": samples}
