"""The plan of a forward: what is queried, what is observed, what the host learns."""

from dataclasses import replace

import torch

from starr.decode.query import Wishes, observable, plan_query, queries
from starr.decode.settings import settings_of
from tests.decode.rows import canvas_of, hold, plan_of, put, request


def test_wishes_add_to_what_the_cache_and_the_strategy_want():
    row = request("____", block_length=2)
    canvas = canvas_of(row)
    last = canvas.column_index == 4
    wishes = Wishes(canvas).add(observed=last, extra=last).add(extra=canvas.column_index == 3)
    found = plan_query(wishes, settings_of([row], torch.device("cpu")), torch.zeros(1).bool(), shift=False)
    assert found.observed[0].nonzero().flatten().tolist() == [1, 2, 4]
    assert found.figures.extra == [2]


def test_without_a_cache_everything_valid_is_queried_and_the_masks_are_observed():
    found = plan_of(request("_a_", start=2))
    assert found.query[0].tolist() == [True] * 5 + [False]
    assert found.observed[0].tolist() == [False, False, True, False, True, False]
    assert found.figures.queried == [5]
    assert found.figures.observed == [2]
    assert (found.width, found.most_queried, found.most_observed) == (3, 5, 2)


def test_held_tokens_are_observed_only_where_the_strategy_revokes():
    rows = request("__", strategy="threshold"), request("__", strategy="starr")
    canvas = hold(hold(canvas_of(*rows), 0, 1), 1, 1)
    assert plan_of(*rows, canvas=canvas).observed[:, 1].tolist() == [False, True]


def test_a_cache_queries_what_the_buffer_lacks_what_changed_and_what_it_wants():
    row = request("____", cache="dual", block_length=2)
    canvas = put(canvas_of(row), buffered=torch.ones(1, 6).bool(), step=torch.tensor([1]))
    canvas = put(canvas, seen=canvas.in_window)
    assert queries(canvas, [(row.cache, torch.tensor([0]))], False)[0].tolist() == [0, 1, 1, 0, 0, 0]
    lacking = replace(canvas, buffered=canvas.buffered & (canvas.column_index != 4))
    assert queries(lacking, [(row.cache, torch.tensor([0]))], False)[0].tolist() == [0, 1, 1, 0, 1, 0]


def test_shifted_logits_query_the_position_before_and_observe_the_one_behind():
    row = request("____", cache="dual", block_length=2)
    canvas = put(canvas_of(row), buffered=torch.ones(1, 6).bool(), step=torch.tensor([1]))
    query = queries(put(canvas, seen=canvas.in_window), [(row.cache, torch.tensor([0]))], True)
    assert query[0].tolist() == [1, 1, 1, 0, 0, 0]
    assert observable(torch.tensor([[True, False, False]]), True).tolist() == [[False, True, False]]


def test_a_trimmed_plan_has_fewer_columns_and_the_same_figures():
    found = plan_of(request("__"))
    assert found.trimmed(2).query.shape == (1, 2)
    assert found.trimmed(2).figures == found.figures
