"""A penalty on the token to the left."""

from __future__ import annotations

import itertools
from dataclasses import replace

import torch

import starr
from starr.api import Options, build_request, run_all
from starr.decode.extras.repetition import Repetition
from starr.decode.propose import ProposalRequest
from starr.decode.request import Blocks, Request
from tests.decode.rows import call_of, canvas_of, request
from tests.tiny import MASK, tiny_model


def penalties(row: Request) -> list[float]:
    """What the guest takes from the left token at every position of the row's first window."""
    canvas = canvas_of(row)
    call = call_of(canvas, row, observed=canvas.in_window)
    asked = ProposalRequest(MASK, torch.zeros(call.observed.index.numel()).long())
    (edit,) = Repetition(tiny_model(), [row], [0]).propose(asked, call).edits
    left = canvas.tokens.gather(1, call.observed.index - 1)[0]
    logits = torch.zeros(len(left), 96)
    for part in (slice(0, 1), slice(1, None)):  # as chunks come
        edit(logits[part], part)
    taken = -logits.gather(1, left[:, None])[:, 0]
    assert logits.sum() == -taken.sum(), "nothing else changes"
    return taken.tolist()


def test_the_first_position_of_a_block_has_nothing_to_its_left():
    """SGLang looks at one block at a time; where the block begins with prompt, its last token is to the left."""
    row = request("____", start=3, strategy="edit:penalty=2")
    assert penalties(row) == [0.0, 2.0, 2.0, 2.0]
    assert penalties(row.change(block_length=2)) == [0.0, 2.0]
    aligned = replace(row, blocks=Blocks(4, 4))  # of a block-causal model, from position 0 on
    assert penalties(aligned) == [2.0]


def repeats(tokens: list[int]) -> int:
    return sum(a == b for a, b in itertools.pairwise(tokens))


def test_edit_repeats_itself_less_and_leaves_other_rows_alone():
    model = tiny_model()
    plain, shy = (
        [
            build_request(model, prompt, Options(strategy=form, max_tokens=24, eos="never"))
            for prompt in ("a", "bb", "ccc")
        ]
        for form in ("edit:preset=quality", "edit:preset=quality,penalty=20")
    )
    alone = [[run_all(model, [r], 1)[0].tokens for r in requests] for requests in (plain, shy)]
    together = [g.tokens for g in run_all(model, [*plain, *shy], 6)]
    assert together == alone[0] + alone[1]
    assert sum(map(repeats, alone[1])) < sum(map(repeats, alone[0]))
    assert all(MASK not in tokens for tokens in together)


def test_no_penalty_is_no_guest():
    model = tiny_model()
    assert (
        starr.generate(model, "a", strategy="edit:penalty=0").tokens
        == starr.generate(model, "a", strategy="edit").tokens
    )
