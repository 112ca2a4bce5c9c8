"""Masks that carry what was last predicted there; whole runs beside dInfer's loop are in test_conformance.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import starr
from starr.api import Options, build_request, run_all
from starr.decode.canvas import columns_where, join, trim, widen
from starr.decode.engine import Engine
from starr.decode.extras.growth import insert
from starr.decode.extras.smoothing import PREDICTED, Smoothing
from starr.decode.forward import Seen, States
from starr.decode.propose import ProposalRequest, propose
from starr.errors import InputError
from tests.decode.rows import call_of, canvas_of, hold, request
from tests.reference.cases import FAST_RULE, LLADA_RULE
from tests.reference.conformance import Case, compared
from tests.reference.special_loops import SmoothedLoop
from tests.tiny import MASK, tiny_model

PROMPTS = [[0, 7, 8, 9], [0, 40], [0, *range(20, 40)]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 30.0), st.integers(1, 9))
def test_the_mean_is_that_of_the_embeddings_over_the_distribution(seed, sharpness, chunk):
    generator = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(5, 11, generator=generator)
    embeddings = torch.randn(11, 4, generator=generator)
    guest = Smoothing(tiny_model(), [], [])
    guest.embeddings = embeddings
    asked = ProposalRequest(mask_id=1, held=torch.zeros(5).long(), readers={PREDICTED: guest.mean})
    parts = [
        propose(torch.Tensor.clone, logits[i : i + chunk], asked.rows(slice(i, i + chunk)), 11).read[PREDICTED]
        for i in range(0, 5, chunk)
    ]
    free = logits.double().index_fill(1, torch.tensor([1]), -torch.inf)
    assert torch.cat(parts).double().sub(free.softmax(1) @ embeddings.double()).abs().max() <= 1e-5


def test_only_masks_of_rows_that_ask_for_it_get_what_was_predicted():
    model, rows = tiny_model(), [request("____", smoothing=0.5), request("____"), request("____", smoothing=2.0)]
    canvas = hold(canvas_of(*rows), 2, 2)
    guest = Smoothing(model, rows, [0, 2])
    assert guest.prepare(call_of(canvas, *rows)).added is None, "nothing is known before the first forward"
    note = torch.rand(*canvas.tokens.shape, 32)
    added = guest.prepare(call_of(canvas.noted({PREDICTED: note}), *rows)).added
    weight = torch.tensor([0.5, 0.0, 2.0])[:, None] * canvas.masked
    assert torch.equal(added, weight[..., None] * note)
    assert not added[:, 0].any()
    assert not added[2, 2].any(), "a prompt or a held token is what it is"


def test_a_position_that_was_not_observed_keeps_its_last_and_padding_writes_nothing():
    model, row = tiny_model(), request("____", smoothing=1.0)
    canvas = canvas_of(row)
    guest = Smoothing(model, [row], [0])
    call = call_of(canvas, row)
    asked = guest.propose(ProposalRequest(MASK, torch.zeros(3).long()), call)
    found = propose(model.net.head, torch.randn(3, 32), asked, 96)
    mean, none = found.read[PREDICTED], States(torch.zeros(0), None)

    def observed(canvas, columns):
        where = columns_where(torch.tensor([[at in columns for at in range(6)]]), 3)  # the rest is padding
        return guest.observe(canvas, Seen(replace(call, observed=where), none, found))

    noted = observed(canvas, (1, 3))
    assert torch.equal(noted.notes[PREDICTED][0, [1, 3]], mean[:2])
    later = observed(noted, (2,))
    assert torch.equal(later.notes[PREDICTED][0, 1:4], mean[[0, 0, 1]])
    assert not later.notes[PREDICTED][0, [0, 4, 5]].any()


def test_the_note_follows_its_row():
    first, second = canvas_of(request("____")), canvas_of(request("_______"))
    note = torch.rand(*first.tokens.shape, 3)
    both = join(first.noted({PREDICTED: note}), second)
    assert torch.equal(both.notes[PREDICTED][0, : first.columns], note[0])
    assert not both.notes[PREDICTED][1].any()
    assert both.notes[PREDICTED].shape == (2, second.columns, 3)
    back = trim(widen(first.noted({PREDICTED: note}), 20), first.columns)
    assert torch.equal(back.notes[PREDICTED], note)


def test_inserted_masks_have_no_prediction_and_the_others_keep_theirs():
    canvas = canvas_of(request("____"))
    note = torch.rand(*canvas.tokens.shape, 3)
    note[:, -1] = 0.0  # the spare column
    at, count, token = torch.tensor([2]), torch.tensor([2]), torch.tensor([MASK])
    grown = insert(canvas.noted({PREDICTED: note}), at, count, token, most=2, longest=99, mask_id=MASK)
    assert torch.equal(grown.notes[PREDICTED][0, [0, 1, 2, 5, 6]], note[0, :5])
    assert not grown.notes[PREDICTED][0, [3, 4]].any()


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
@pytest.mark.parametrize(
    ("strategy", "rule", "weight"),
    [("threshold", FAST_RULE, 0.3), ("threshold", FAST_RULE, 1.0), ("confidence", LLADA_RULE, 0.3)],
    ids=lambda value: str(value) if isinstance(value, str | float) else "",
)
@pytest.mark.parametrize("block", [None, 16])
def test_whole_runs_are_those_of_the_slow_loop(shift, strategy, rule, weight, block):
    """In 48 forwards with weight 1 random weights make a difference of 1e-7 matter, in the slow loop, too."""
    loop = partial(SmoothedLoop, weight=weight, block=block or 48)
    case = Case(strategy, block, rule, "dInfer", loop=loop, smoothing=weight)
    found = compared(tiny_model(shift=shift, sharpness=6.0), case, PROMPTS, 48)
    assert (found.tokens, found.forwards) == (3, 3)


def test_it_changes_what_is_decoded():
    model = tiny_model(sharpness=6.0)
    plain, smooth = (starr.generate(model, PROMPTS, smoothing=weight, max_tokens=48) for weight in (0.0, 1.0))
    assert [g.tokens for g in plain] != [g.tokens for g in smooth]


@pytest.mark.parametrize("cache", ["prefix:refresh=1", "dual:refresh=1", "dkv:refresh=1"])
def test_a_cache_that_refreshes_in_every_step_is_none(cache):
    model = tiny_model(sharpness=6.0)
    given = {"max_tokens": 32, "smoothing": 1.0, "strategy": "threshold", "block_length": 8}
    plain, cached = (starr.generate(model, PROMPTS, cache=name, **given) for name in ("none", cache))
    assert [g.tokens for g in plain] == [g.tokens for g in cached]


@pytest.mark.parametrize("block", [None, 4], ids=["full", "block-causal"])
def test_alone_equals_batched_equals_joined_late(block):
    model = tiny_model(sharpness=6.0, block=block)
    kinds = [{"smoothing": 1.0}, {}, {"smoothing": 0.3, "guidance": 1.5}, {"smoothing": 2.0, "temperature": 0.7}]
    kinds = [kind for kind in kinds if block is None or "guidance" not in kind]
    rows = [
        build_request(model, "ab" * (3 * i + 1), Options(strategy="starr", max_tokens=20 + 5 * i, **kind))
        for i, kind in enumerate(kinds)
    ]
    alone = [run_all(model, [row], 1)[0].tokens for row in rows]
    assert [g.tokens for g in run_all(model, rows, 4)] == alone
    engine, late = Engine(model, max_rows=4), {}
    order = [engine.add(rows[0])]
    engine.step()
    order += [engine.add(row) for row in rows[1:]]
    while engine.busy:
        late |= {event.id: event.generation.tokens for event in engine.step() if event.done}
    assert [late[id] for id in order] == alone


def test_what_it_cannot_be_used_with_is_refused_in_one_line():
    model = tiny_model()
    with pytest.raises(InputError, match="wino cannot be used with smoothing: its shadow block"):
        starr.generate(model, "a", strategy="wino", smoothing=1.0)
    with pytest.raises(InputError, match="Cache adaptive cannot be used: it compares masks as they are"):
        starr.generate(model, "a", cache="adaptive", smoothing=1.0)
    with pytest.raises(InputError, match="smoothing must be"):
        starr.generate(model, "a", smoothing=-1.0)
