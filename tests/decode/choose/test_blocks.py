"""Choices of block-causal models against a literal computation, block after block."""

from __future__ import annotations

import math

import pytest
import torch

import starr
from benchmarks.structured_runs import BLOCK, BLOCKS, block_model
from starr.errors import InputError
from starr.model.network.masks import block_causal
from tests.tiny import EOS, MASK

CHOICES = ["ab", "c", "abcabcabcab", "abcab0", "yz"]


def literal(model, row: list[int], origin: int) -> torch.Tensor:
    """Log-probabilities (position, token) of a row, each where it is predicted; the mask id is never an answer."""
    at = torch.arange(len(row))[None] - origin
    with torch.no_grad():
        states = model.net(torch.tensor([row]), attend=block_causal(at, at, BLOCK))
        logits = model.net.head(states)[0].float()
    logits[:, MASK] = -torch.inf
    found = logits.log_softmax(dim=1)
    return torch.cat([found[:1], found[:-1]]) if model.spec.shift else found


def score(model, prompt: list[int], tokens: list[int]) -> float:
    """One block after the other: what the model says of its tokens when all before it stands and it is masked."""
    origin = len(prompt) if model.spec.from_prompt else 0
    row, total, place = [*prompt, *tokens], 0.0, len(prompt)
    while place < len(row):
        end = place + 1
        while (end - origin) % BLOCK:
            end += 1
        masked = row[:place] + [MASK] * (end - place)
        stop = min(end, len(row))
        if model.spec.shift and (place - origin) % BLOCK == 0:  # its first token comes from the block before
            total += float(literal(model, masked, origin)[place, row[place]])
            masked[place] = row[place]
            total += sum(float(literal(model, masked, origin)[at, row[at]]) for at in range(place + 1, stop))
        else:
            total += sum(float(literal(model, masked, origin)[at, row[at]]) for at in range(place, stop))
        if EOS in row[place:stop]:
            break
        place = stop
    return total


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("length", [1, BLOCK - 3, BLOCK - 2, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_a_choice_is_the_product_of_its_blocks(kind, length):
    model = block_model(5, kind)
    encode = model.tokenizer.encode
    prompt = encode(("abcxyz" * 4)[:length])
    room = max(len(encode(choice)) for choice in CHOICES) + 1
    scores = {}
    for choice in CHOICES:
        tokens = encode(choice)
        scores[choice] = score(model, prompt, tokens + [EOS] * (room - len(tokens)))
    found = starr.choose(model, prompt, CHOICES)
    total = sum(map(math.exp, scores.values()))
    assert found.logprobs == pytest.approx(scores, rel=1e-4)
    assert found.probabilities == pytest.approx({c: math.exp(s) / total for c, s in scores.items()}, rel=1e-3)
    assert found.forwards == 1
    assert found.prompt_tokens == length


def test_a_block_is_read_with_the_choices_own_tokens_before_it():
    """Two choices that differ in the first block alone: the second block does not cancel out."""
    model = block_model(5, "sdar")
    prompt = model.tokenizer.encode("abcabc")
    one, two = ([*model.tokenizer.encode(text), EOS] for text in ("xyabc", "zzabc"))
    tail = [score(model, [*prompt, *tokens[:2]], tokens[2:]) for tokens in (one, two)]
    assert abs(tail[0] - tail[1]) > 1e-3
    found = starr.choose(model, prompt, ["xyabc", "zzabc"])
    head = [score(model, prompt, tokens[:2]) for tokens in (one, two)]
    wanted = [tail[place] + head[place] for place in (0, 1)]
    assert [*found.logprobs.values()] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("kind", ["sdar", "llada2"])
def test_the_constrained_decoder_agrees_where_one_block_holds_every_choice(kind):
    choices = ["xy", "z", "qk"]  # of single letters, so that each has one spelling in tokens
    for seed in range(6):
        model = block_model(seed, kind)
        answer = starr.choose(model, "abc", choices)
        run = starr.generate(model, "abc", choices=choices, max_tokens=3, max_forwards=1)
        assert (run.text, run.stats.forwards) == (answer.text, 1)


def test_a_hole_at_the_end_is_a_question_and_text_behind_one_is_refused():
    model = block_model(5, "sdar")
    (found,) = starr.choose(model, "abc[MASK]", [["x", "y"]])
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    for text, choices in (("a[MASK]b", [["x"]]), ("a[MASK][MASK]", [["x"], ["y"]])):
        with pytest.raises(InputError, match="does not see what follows a block"):
            starr.choose(model, text, choices)


def test_a_row_ends_where_the_context_does():
    model = block_model(5, "sdar")
    prompt = [5] * (model.spec.max_length - 3)
    assert starr.choose(model, prompt, ["ab", "c"]).forwards == 1
    with pytest.raises(InputError, match="positions"):
        starr.choose(model, prompt, ["abcabc"])
