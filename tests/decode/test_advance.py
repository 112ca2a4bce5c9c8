"""Windows: what opens next, when a row is done, what is settled."""

from dataclasses import replace

import torch

from starr.api import Options, build_request
from starr.decode.advance import advance, first_true, move_end, settled_until, stop_after
from starr.decode.engine import Engine
from starr.decode.stops.base import Verdict
from tests.decode.rows import EOS_IDS, NO_IDS, canvas_of, hold, put, request
from tests.tiny import EOS, tiny_model


def filled(canvas, columns):
    for column in columns:
        canvas = hold(canvas, 0, column)
    return put(canvas, step=canvas.window.step + 1, total=canvas.total + 1)


def test_first_true_is_the_width_where_there_is_none():
    assert first_true(torch.tensor([[False, True, True], [False, False, False]])).tolist() == [1, 3]


def test_blocks_follow_each_other_and_those_without_masks_are_skipped():
    canvas = canvas_of(request("__ab__", block_length=2))
    assert (int(canvas.window.start), int(canvas.window.end)) == (1, 3)
    after, done = advance(filled(canvas, [1, 2]), NO_IDS)
    assert not done
    assert (int(after.window.start), int(after.window.end), int(after.window.step)) == (5, 7, 0)
    assert not after.last.seen.any()


def test_a_window_with_masks_stays_open_and_one_kept_open_too():
    canvas = filled(canvas_of(request("__", block_length=1)), [])
    assert int(advance(canvas, NO_IDS)[0].window.start) == 1
    closed = filled(canvas, [1])
    assert int(advance(put(closed, kept_open=torch.tensor([True])), NO_IDS)[0].window.start) == 1
    assert int(advance(put(closed, kept_open=torch.tensor([False])), NO_IDS)[0].window.start) == 2


def test_a_full_window_that_is_kept_open_holds_its_row_back():
    full = hold(filled(canvas_of(request("__")), [1]), 0, 2, token=EOS)
    yes, no = torch.tensor([True]), torch.tensor([False])
    assert not advance(put(full, kept_open=yes), NO_IDS)[1].any(), "no mask is left, but the strategy may revise"
    assert not advance(put(full, kept_open=yes), EOS_IDS)[1].any(), "nor does an end-of-text end it"
    assert advance(put(full, kept_open=no), EOS_IDS)[1].all()
    unfilled = hold(canvas_of(request("__")), 0, 1, token=EOS)
    assert advance(put(unfilled, kept_open=no), EOS_IDS)[1].all(), "with masks behind the end the text is there"
    assert not advance(put(unfilled, kept_open=yes), EOS_IDS)[1].any(), "but its last tokens may not be checked yet"


def test_a_row_is_done_without_masks_or_at_an_end_with_all_before_it_held():
    canvas = canvas_of(request("___"))
    assert advance(filled(canvas, [1, 2, 3]), NO_IDS)[1].all()
    ended = hold(canvas, 0, 2, token=EOS)
    assert not advance(ended, EOS_IDS)[1].any(), "a mask stands before it"
    assert advance(hold(ended, 0, 1), EOS_IDS)[1].all()
    assert not advance(put(hold(ended, 0, 1), ends=torch.tensor([False])), EOS_IDS)[1].any()


def test_the_last_step_has_the_whole_rest_as_its_window():
    canvas = canvas_of(request("____", block_length=1, max_forwards=2))
    after, _ = advance(filled(canvas, []), NO_IDS)
    assert (int(after.window.start), int(after.window.end)) == (1, 5)


def test_a_decision_moves_the_end_and_a_verdict_the_limit():
    canvas = canvas_of(request("____"))
    assert int(move_end(canvas, torch.tensor([2])).window.end) == 3
    assert int(move_end(canvas, torch.tensor([-1])).window.end) == 5
    assert int(move_end(canvas, torch.tensor([0])).window.end) == 2, "a window has at least one position"
    verdict = Verdict(torch.tensor([True]), canvas.masked[:, 1:5], torch.tensor([False]))
    assert int(stop_after(canvas, verdict).limit) == 1
    assert int(stop_after(filled(canvas, [1, 2, 3, 4]), verdict).limit) == 1, "no further step without masks"
    assert int(stop_after(replace(canvas, limit=torch.tensor([0])), verdict).limit) == 0, "never more than before"
    assert stop_after(canvas, None) is canvas


def test_revocable_text_settles_with_its_window_only():
    canvas = hold(canvas_of(request("____", block_length=2)), 0, 1)
    assert settled_until(canvas, torch.tensor([False])).tolist() == [2]
    assert settled_until(canvas, torch.tensor([True])).tolist() == [1]


def test_a_late_row_does_not_wait_for_masks_that_a_stop_rule_hides():
    """Block-causal, a strategy that revokes, and the rule that leaves everything after an end-of-text masked."""
    for seed in (24, 33):  # of 60 tried, those that had no end
        model = tiny_model(seed=seed, block=8, sharpness=(0.5, 3.0, 8.0)[seed % 3], shift=bool(seed % 2))
        options = Options(strategy="starr", cache="none", max_tokens=20, temperature=1.0, seed=seed, stop_rule="eos")
        row = build_request(model, "abc", options)
        engine = Engine(model)
        engine.add(row)
        steps = 0
        while engine.busy and steps <= row.step_limit:
            engine.step()
            steps += 1
        assert not engine.busy
