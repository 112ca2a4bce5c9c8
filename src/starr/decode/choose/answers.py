"""The probability of every choice, from one forward over all rows (several, where rows would fill the memory).

Letters: K rows, O asked positions, D width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from starr.decode.choose.blocks import block_by_block
from starr.decode.choose.questions import Question
from starr.decode.forward import BlockMasks, whole
from starr.decode.prompts.prepare import check_length
from starr.decode.propose import ProposalRequest, logits_of
from starr.errors import InputError

if TYPE_CHECKING:
    from starr.model.load import Model

POSITIONS = 1 << 14  # of one forward
MOST_POSITIONS = 1 << 20  # of all rows


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer to one question."""

    text: str  # the most probable choice; the first of equals
    probability: float
    probabilities: dict[str, float]  # of every choice, in the order given; they sum to 1
    logprobs: dict[str, float] = field(repr=False)  # of the tokens of each, all together, before dividing by the sum
    prompt_tokens: int = field(repr=False, default=0)  # of the row, masks not counted
    forwards: int = field(repr=False, default=1)
    positions: int = field(repr=False, default=0)  # of all rows that were read

    def __str__(self) -> str:
        return self.text


@torch.inference_mode()
def answers(model: Model, rows: list[list[int]], asked: list[list[Question]]) -> list[Choice]:
    """The answer to every question."""
    spec = model.spec
    for row in rows:
        check_length(len(row), 0, spec.max_length)
    if rows and rows[0][:1] == [spec.mask_id]:
        raise InputError("A mask cannot come first.", hint="Write some text before it.", param="prompt")
    known = [sum(token != spec.mask_id for token in rows[parts[0].row]) for parts in asked]
    origin = spec.origin(asked[0][0].start)
    if spec.block_length is not None:
        rows, asked = block_by_block(model, rows, asked)
    total = sum(map(len, rows))
    if total > MOST_POSITIONS:
        raise InputError(
            f"The choices take {total} positions; at most {MOST_POSITIONS} are allowed.",
            hint="Give fewer choices, or shorter ones.",
            param="choices",
        )
    scores = [dict.fromkeys(parts[0].order, 0.0) for parts in asked]
    calls = list(forwards_of(rows))
    for call in calls:
        here = {place: [part for part in parts if part.row in call] for place, parts in enumerate(asked)}
        found = read(model, rows, call, [part for parts in here.values() for part in parts], origin)
        for place, parts in here.items():
            for choice in (choice for part in parts for choice in part.fillings):
                scores[place][choice] += next(found)
    return [answer_of(own, tokens, len(calls), total) for own, tokens in zip(scores, known, strict=True)]


def forwards_of(rows: list[list[int]]) -> Iterator[range]:
    """Runs of rows that go through one forward together."""
    first = 0
    for place in range(1, len(rows) + 1):
        longest = max(len(row) for row in rows[first : place + 1])
        if place == len(rows) or (place + 1 - first) * longest > POSITIONS:
            yield range(first, place)
            first = place


def read(model: Model, rows: list[list[int]], call: range, parts: list[Question], origin: int) -> Iterator[float]:
    """The log-probability of every filling of the ``parts``, which stand on the rows of one forward."""
    places: list[list[int]] = [[] for _ in call]
    for part in parts:
        places[part.row - call.start] += part.places
    places = [sorted(set(each)) for each in places]
    states = states_of(model, rows[call.start : call.stop], places, origin)
    found = [log_probabilities(model, own[: len(each)]) for own, each in zip(states, places, strict=True)]
    for part in parts:
        row = part.row - call.start
        at = [places[row].index(place) for place in part.places]
        for tokens in part.fillings.values():
            yield float(found[row][at, tokens].double().sum())


def states_of(model: Model, rows: list[list[int]], places: list[list[int]], origin: int) -> Tensor:
    """(K, O, D): the states that predict some places of each row."""
    spec, device = model.spec, model.device
    sizes, most = [len(row) for row in rows], max(map(len, places))
    tokens = torch.tensor([row + [0] * (max(sizes) - len(row)) for row in rows], device=device)
    index = torch.tensor([each + [0] * (most - len(each)) for each in places], device=device)
    wanted = (index - 1).clamp(min=0) if spec.shift else index
    length = torch.tensor(sizes, device=device)
    masks = None
    if spec.block_length is not None:
        masks = BlockMasks(torch.full_like(length, spec.block_length), torch.full_like(length, origin))
    return whole(model.net, tokens, length, sizes, wanted, masks)


def log_probabilities(model: Model, states: Tensor) -> Tensor:
    """(O, V) float32 of states (O, D); every end-of-text id stands for all of them."""
    spec = model.spec
    asked = ProposalRequest(spec.mask_id, torch.zeros(len(states), dtype=torch.int64))
    found = logits_of(model.net.head, states, asked).log_softmax(dim=1)
    ends = list(spec.eos_ids)
    found[:, ends] = found[:, ends].logsumexp(dim=1, keepdim=True)
    return found


def answer_of(scores: dict[str, float], prompt_tokens: int, forwards: int, positions: int) -> Choice:
    """The answer to a question whose choices have these log-probabilities, and what it cost."""
    top = max(scores.values())
    weights = {choice: math.exp(score - top) for choice, score in scores.items()}
    total = sum(weights.values())
    shares = {choice: weight / total for choice, weight in weights.items()}
    best = max(shares, key=lambda choice: shares[choice])
    return Choice(best, shares[best], shares, scores, prompt_tokens, forwards, positions)
