"""Strategies through the whole engine beside whole loops of their rules (tests/reference/loops.py)."""

from __future__ import annotations

import pytest
import torch

import starr
from starr.decode.confidence import on_grid
from starr.evals.tasks import load_task
from tests.reference.cases import CASES, of_adablock, of_edit
from tests.reference.conformance import Case, compared
from tests.tiny import tiny_model

PROMPTS = [[0, 7, 8, 9], [0, 40], [0, *range(20, 40)]]


ENDS = "adablock:delimiters=" + "/".join(map(str, range(3, 33))) + ",delimiter_tau=0.02"  # the tokenizer has none
SAME = [*CASES, Case(ENDS, None, of_adablock(ENDS), "AdaBlock")]
SAME += [Case("edit:tau=0.3,edit=0.3", block, of_edit(0.3, 0.3), "LLaDA2.1") for block in (None, 32)]


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
@pytest.mark.parametrize("case", SAME, ids=lambda case: f"{case.name[:40]}-{case.block}")
def test_same_tokens_and_forwards_on_random_weights(case, shift):
    if shift and not case.shifted:
        pytest.skip("the loop does not know models that predict the next position")
    found = compared(tiny_model(shift=shift, sharpness=6.0), case, PROMPTS, 64)
    assert (found.tokens, found.forwards) == (3, 3)


COARSE = {
    "confidence": ("view.unsaturated", lambda confidence, odds: confidence),
    "margin:schedule=dream,steps={half}": ("strategies.margin.on_logit_grid", torch.zeros_like),
    "entropy": ("propose.on_small_grid", on_grid),
    "remdm_llada": ("propose.on_small_grid", on_grid),
    "wino": ("propose.on_small_grid", on_grid),
    "saber": ("strategies.saber.resolved", lambda confidence, sure: confidence.double()),
}


@pytest.mark.parametrize("name", COARSE)
def test_sharp_predictions_go_in_the_order_of_the_loops(name, monkeypatch):
    """Most confidences here are 1 on the grid of 2^-16, and most others 0; what tells them apart is needed."""
    model = tiny_model(sharpness=18.0)
    case = next(case for case in CASES if case.name == name)
    found = compared(model, case, PROMPTS, 64)
    assert (found.tokens, found.forwards) == (3, 3)
    part, coarse = COARSE[name]
    monkeypatch.setattr(f"starr.decode.{part}", coarse)
    assert compared(model, case, PROMPTS, 64).tokens < 3


@pytest.mark.slow
def test_lladas_loop_on_thirty_prompts_of_the_bundled_model():
    model, task = starr.load(dtype="float32"), load_task("word-problems")
    asked = [model.tokenizer.chat([{"role": "user", "content": item.chat}]) for item in task.items[:30]]
    assert compared(model, CASES[0], asked, 64).tokens == 30
