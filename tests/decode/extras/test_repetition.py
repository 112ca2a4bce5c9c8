"""A penalty on the token to the left."""

from __future__ import annotations

import itertools
from dataclasses import replace

import torch

import starr
from starr.api import Options, build_request, run_all
from starr.decode.canvas import places
from starr.decode.extras.repetition import Repetition
from starr.decode.propose import ProposalRequest, propose
from starr.decode.request import Blocks, Request
from tests.decode.rows import canvas_of, request
from tests.tiny import MASK, tiny_model


def test_the_logit_of_the_left_token_falls_by_the_penalty():
    logits = torch.tensor([[1.0, 0.0, 3.0, 2.5], [1.0, 0.0, 3.0, 2.5], [1.0, 0.0, 3.0, 2.5]])
    left, penalty = torch.tensor([2, 3, 1]), torch.tensor([1.0, 1.0, 1.0])
    asked = ProposalRequest(mask_id=1, held=torch.zeros(3).long(), left=left, penalty=penalty)
    found = propose(lambda hidden: hidden.clone(), logits, asked, 4)
    assert found.token.tolist() == [3, 2, 2], "a mask to the left changes nothing"


def penalties(row: Request) -> list[float]:
    """What the guest takes at every position of the row's first window, prompt excluded."""
    canvas = canvas_of(row)
    where = places(canvas.in_window, int(canvas.in_window.sum()))
    asked = ProposalRequest(MASK, torch.zeros(where.index.numel()).long())
    return Repetition(tiny_model(), [row], [0]).propose(asked, canvas, where).penalty.tolist()


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
