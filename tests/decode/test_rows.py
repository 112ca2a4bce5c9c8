"""Rows on the host: costs add up, and every event is a value of its own step."""

from itertools import pairwise

import starr
from starr.decode.rows import LiveRow, StepCost
from tests.decode.rows import request
from tests.tiny import tiny_model


def test_costs_add_up():
    row = LiveRow(0, request("__"), 3)
    for cost in (StepCost(1, 3, 0, 1), StepCost(2, 5, 1, 0)):
        row.book(cost, None, 0)
    assert (row.forwards, row.positions, row.padded, row.full_forwards) == (3, 8, 1, 1)
    assert row.history == []


def test_a_list_of_events_has_every_step_as_it_was():
    model = tiny_model()
    events = list(starr.stream(model, "a prompt", max_tokens=16, block_length=4, trace=True, strategy="starr"))
    whole = starr.generate(model, "a prompt", max_tokens=16, block_length=4, trace=True, strategy="starr")
    assert len(events) > 4
    assert [event.stats.forwards for event in events] == list(range(1, len(events) + 1))
    assert [event.record.step for event in events] == list(range(len(events)))
    assert [event.record.action for event in events] == [step.action for step in whole.trace.steps]
    assert all(a.stats.commits <= b.stats.commits for a, b in pairwise(events))
    assert events[0].tokens != events[-1].tokens
    masks = [sum(state == "masked" for _, state in event.canvas) for event in events]
    assert masks[0] > masks[-1] == 0
    assert events[-1].generation.tokens == whole.tokens


def test_settled_places_make_the_settled_text():
    model = tiny_model()
    for event in starr.stream(model, "a prompt", max_tokens=16, block_length=4):
        assert all(place < event.settled for place in event.places)
        assert event.text == model.tokenizer.decode([event.tokens[place] for place in event.places])
