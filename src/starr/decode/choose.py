"""Choices with probabilities: one forward gives the probability of each.

A question is a run of masks; each choice is one filling of it. The probability of a choice is the product of those of
its tokens, all from the same forward, over the sum of all choices. Questions of one text are read in the same forward.
Behind a prompt the run is one longer than the longest choice, and shorter choices end in end-of-texts. In a text with
holes every hole is as long as its choice; where the choices of a hole differ in length, each length is a row of its
own. Letters: K rows, N asked positions, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode.prompts.infill import BARE_HOLE
from starr.decode.propose import ProposalRequest, logits_of
from starr.decode.request import check_length
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer to one question."""

    text: str  # the most probable choice; the first of equals
    probability: float
    probabilities: dict[str, float]  # of every choice, in the order given; they sum to 1
    logprobs: dict[str, float] = field(repr=False)  # of the tokens of each, all together, before dividing by the sum
    prompt_tokens: int = field(repr=False, default=0)  # of the row, masks not counted

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Question:
    """A run of masks on one row, and the fillings of it that are scored there."""

    row: int
    start: int
    fillings: dict[str, list[int]]
    order: tuple[str, ...]  # every choice of the question, as given


def questions_behind(
    model: Model, prompt: Sequence[int], choices: Sequence[str]
) -> tuple[list[list[int]], list[list[Question]]]:
    """One row: the prompt and masks for the longest choice and its end."""
    encoded = {choice: encode(model, choice) for choice in choices}
    room = max(map(len, encoded.values())) + 1
    end = model.spec.eos_ids[0]
    fillings = {choice: tokens + [end] * (room - len(tokens)) for choice, tokens in encoded.items()}
    return [[*prompt, *[model.spec.mask_id] * room]], [[Question(0, len(prompt), fillings, tuple(choices))]]


def questions_within(
    model: Model, text: str, choices: Sequence[Sequence[str]]
) -> tuple[list[list[int]], list[list[Question]]]:
    """A row with every hole at its longest, and one more for each other length of a hole."""
    parts = BARE_HOLE.split(text)
    if len(parts) - 1 != len(choices):
        raise InputError(
            f"The text has {len(parts) - 1} holes, and there are choices for {len(choices)}.",
            hint="Write [MASK] for each question.",
            param="choices",
        )
    before = [] if model.spec.bos_id is None else [model.spec.bos_id]
    texts = [before + encode(model, parts[0], empty=True), *(encode(model, part, empty=True) for part in parts[1:])]
    encoded = [{choice: encode(model, choice) for choice in each} for each in choices]
    longest = [max(map(len, each.values())) for each in encoded]
    rows: list[list[int]] = []
    asked: list[list[Question]] = [[] for _ in choices]
    for hole, each in enumerate(encoded):
        for size in sorted({len(tokens) for tokens in each.values()}, reverse=True):
            sizes = [*longest[:hole], size, *longest[hole + 1 :]]
            row, starts = row_of(texts, sizes, model.spec.mask_id)
            if row not in rows:
                rows.append(row)
            fillings = {choice: tokens for choice, tokens in each.items() if len(tokens) == size}
            asked[hole].append(Question(rows.index(row), starts[hole], fillings, tuple(each)))
    return rows, asked


def row_of(texts: list[list[int]], sizes: list[int], mask_id: int) -> tuple[list[int], list[int]]:
    """Texts with runs of masks between them, and where each run begins."""
    row, starts = list(texts[0]), []
    for size, text in zip(sizes, texts[1:], strict=True):
        starts.append(len(row))
        row += [mask_id] * size + text
    return row, starts


def encode(model: Model, text: str, *, empty: bool = False) -> list[int]:
    found = model.tokenizer.encode(text) if text else []
    if not found and not empty:
        raise InputError("A choice must not be empty.", param="choices")
    return found


@torch.inference_mode()
def answers(model: Model, rows: list[list[int]], asked: list[list[Question]]) -> list[Choice]:
    """The answer to every question, from one forward over all rows."""
    for row in rows:
        check_length(len(row), 0, model.spec.max_length)
    if rows and rows[0][:1] == [model.spec.mask_id]:
        raise InputError("A mask cannot come first.", hint="Write some text before it.", param="prompt")
    masks = [[place for place, token in enumerate(row) if token == model.spec.mask_id] for row in rows]
    logprobs = distributions(model, rows, masks)
    place = [{column: number for number, column in enumerate(columns)} for columns in masks]
    found = []
    for parts in asked:
        scores = dict.fromkeys(parts[0].order, 0.0)
        for part in parts:
            for choice, tokens in part.fillings.items():
                here = [place[part.row][part.start + i] for i in range(len(tokens))]
                scores[choice] = float(logprobs[part.row, here, tokens].double().sum())
        first = parts[0].row
        found.append(answer_of(scores, len(rows[first]) - len(masks[first])))
    return found


def distributions(model: Model, rows: list[list[int]], masks: list[list[int]]) -> Tensor:
    """(K, O, V) float32: log-probabilities of the masks of each row; every end-of-text id stands for all of them."""
    spec, net, device = model.spec, model.net, model.device
    columns, most = max(map(len, rows)), max(map(len, masks))
    tokens = torch.tensor([row + [0] * (columns - len(row)) for row in rows], device=device)
    index = torch.tensor([each + [0] * (most - len(each)) for each in masks], device=device)
    wanted = (index - 1).clamp(min=0) if spec.shift else index
    length = torch.tensor([len(row) for row in rows], device=device)
    equal = len(set(map(len, rows))) == 1
    states = net(tokens, wanted=wanted) if equal else net.packed(tokens, length, int(length.sum()), wanted)
    asked = ProposalRequest(spec.mask_id, torch.zeros(states.shape[0] * states.shape[1], dtype=torch.int64))
    logits = logits_of(model.net.head, states.flatten(0, 1), asked)
    found = logits.log_softmax(dim=1)
    found[:, list(spec.eos_ids)] = found[:, list(spec.eos_ids)].logsumexp(dim=1, keepdim=True)
    return found.view(*states.shape[:2], -1)


def answer_of(scores: dict[str, float], prompt_tokens: int) -> Choice:
    """The answer to a question whose choices have these log-probabilities."""
    top = max(scores.values())
    weights = {choice: math.exp(score - top) for choice, score in scores.items()}
    total = sum(weights.values())
    shares = {choice: weight / total for choice, weight in weights.items()}
    best = max(shares, key=lambda choice: shares[choice])
    return Choice(best, shares[best], shares, scores, prompt_tokens)
