"""Drafts of a row: what they cost, what they see, and where there are none."""

import pytest
import torch

import starr
from starr.api import build_request, run_all
from starr.decode.engine import Engine
from starr.decode.view import DRAFT, DRAFT_TOKEN, draft_notes
from starr.options import Options
from tests.tiny import MASK, tiny_model


def running(model, *forms, steps=1, length=9):
    """An engine some steps into rows of these strategies."""
    engine = Engine(model, max_rows=len(forms))
    for form in forms:
        engine.add(build_request(model, "abc", Options(strategy=form, max_tokens=length, eos="never")))
    for _ in range(steps):
        engine.step()
    return engine


def test_a_draft_is_predicted_as_a_row_of_its_own_would_be():
    model = tiny_model()
    engine = running(model, "freedave:drafts=3", "threshold:tau=2")
    before = engine.batch.canvas
    drafted = before.notes[DRAFT][0]
    assert sorted(drafted[drafted > 0].tolist()) == [1, 2]
    states = []
    for number in (1, 2):
        filled = (drafted > 0) & (drafted <= number)
        states.append(torch.where(filled, before.notes[DRAFT_TOKEN][0], before.tokens[0]))
    engine.step()
    after = engine.batch.canvas
    length = int(before.length[0])
    for number, state in enumerate(states, 1):
        with torch.no_grad():
            logits = model.net.head(model.net(state[None, :length]))[0].float()
        logits[:, [MASK, *model.spec.eos_ids]] = -torch.inf
        open_ = state[:length] == MASK
        assert torch.equal(after.notes[draft_notes(number)[0]][0, :length][open_], logits.argmax(1)[open_])


def test_only_drafts_that_there_are_cost_positions():
    model = tiny_model()
    engine = running(model, "freedave:drafts=3", "confidence", steps=0)
    costs = []
    while engine.busy and len(costs) < 4:
        engine.step()
        costs.append([row.positions for row in engine.batch.rows])
    assert costs[0] == [13, 13], "the first step has no drafts"
    assert costs[1] == [13 + 3 * 13, 26]


@pytest.mark.parametrize("drafts", [1, 2])
def test_no_rows_without_need(drafts):
    engine = running(tiny_model(), f"freedave:drafts={drafts}")
    assert bool(engine.batch.guests) == (drafts > 1)


@pytest.mark.parametrize("options", [{"cache": "dual", "block_length": 4}, {"temperature": 1.0}, {"guidance": 1.0},
                                     {"regex": "[a-z]{2,4} (has|had)"}])  # fmt: skip
def test_where_drafts_cannot_be_checked_there_are_none(options):
    """Beside a row that has some: forwards and text are those of confidence."""
    if "regex" in options:
        pytest.importorskip("outlines_core")
    model = starr.load() if "regex" in options else tiny_model()
    forms = ("freedave", "confidence")
    rows = [build_request(model, "abc", Options(strategy=form, max_tokens=8, **options)) for form in forms]
    other = build_request(model, "abc", Options(strategy="freedave:drafts=3", max_tokens=9))
    fast, plain, _ = run_all(model, [*rows, other], 3)
    assert (fast.tokens, fast.stats.forwards, fast.stats.positions) == (
        plain.tokens,
        plain.stats.forwards,
        plain.stats.positions,
    )


def test_one_request_in_two_rows_is_counted_row_by_row():
    model = tiny_model()
    request = build_request(model, "abc", Options(strategy="freedave:drafts=3", max_tokens=9, eos="never"))
    alone = run_all(model, [request], 1)[0].stats.positions
    engine, found = Engine(model, max_rows=2), []
    engine.add(request)
    engine.step()
    engine.add(request)
    while engine.busy:
        found += [event.stats.positions for event in engine.step() if event.done]
    assert found == [alone, alone]
