"""With a cache an early end waits for a forward over everything."""

from __future__ import annotations

import pytest
import torch

import starr
from starr.api import Options, build_request
from starr.decode.engine import Engine
from starr.decode.extras.second_look import SecondLook
from starr.decode.query import Wishes
from tests.decode.rows import put
from tests.tiny import tiny_model

SMALL = "ice:steps=2,length=12,answer=4,mark=S{}:,lead=#,threshold=0.6"
PROMPTS = ["a", "bb", "some words", "a longer prompt", "q"]
CACHES = ("prefix", "dual", "dkv", "dkv:refresh=3", "dkv-greedy", "adaptive")


def steps_of(model, cache: str, prompt: str) -> list[tuple[int, int, bool, bool]]:
    """Of every step: positions queried, positions of the row, whether thinking was left, whether it was the last."""
    engine, found, done = Engine(model), [], False
    request = build_request(model, prompt, Options(ice=SMALL, max_tokens=60, strategy="threshold:tau=0.5", cache=cache))
    answer = request.start + request.rules[0].start
    engine.add(request)
    engine.batch.admit()
    while not done:
        figures, masked = engine.batch.plan.figures, engine.batch.canvas.masked[0, :answer]
        queried, length, thinking = figures.queried[0], figures.length[0], bool(masked.any())
        done = any(event.done for event in engine.step())
        found.append((queried, length, thinking, done))
    return found


@pytest.mark.parametrize("shift", [False, True], ids=["llada", "dream"])
@pytest.mark.parametrize("cache", CACHES)
def test_a_run_ends_early_only_by_a_forward_over_everything(cache, shift):
    early = partly = 0
    for seed in range(4):
        model = tiny_model(shift=shift, seed=seed, sharpness=6.0)
        for prompt in PROMPTS:
            steps = steps_of(model, cache, prompt)
            partly += any(queried < length for queried, length, _, _ in steps)
            queried, length, thinking, _ = steps[-1]
            early += thinking
            assert queried == length or not thinking
    assert early, "no run ended early"
    assert partly, "no forward left anything out"


def test_rows_that_are_not_near_and_rows_without_a_cache_are_left_alone():
    model = tiny_model()
    options = {"ice": SMALL, "max_tokens": 60}
    rows = [build_request(model, "ab", Options(cache=cache, **options)) for cache in ("dkv", "none", "dkv")]
    assert [SecondLook.serves(row) for row in rows] == [True, False, True]
    assert not SecondLook.serves(build_request(model, "ab", Options(cache="dkv", max_tokens=60)))
    engine = Engine(model)
    for row in rows:
        engine.add(row)
    engine.batch.admit()
    canvas, guest = engine.batch.canvas, SecondLook(model, rows, [0, 2])
    assert not guest.plan(Wishes(canvas)).query.any(), "before the first forward nothing is sure"
    start = rows[0].start + rows[0].rules[0].start
    seen, sure = canvas.last.seen.clone(), canvas.last.confidence.clone()
    seen[:, start:] = True
    sure[2, start:] = 1.0
    canvas = put(canvas, seen=seen, confidence=sure, proposal=canvas.last.proposal + 9)
    assert torch.equal(guest.plan(Wishes(canvas)).query, canvas.valid & torch.tensor([[False], [False], [True]]))


@pytest.mark.parametrize("cache", ["prefix:refresh=1", "dual:refresh=1", "dkv:refresh=1"])
def test_a_cache_that_refreshes_in_every_step_is_none(cache):
    model = tiny_model(sharpness=6.0)
    plain, cached = (
        [starr.generate(model, prompt, ice=SMALL, max_tokens=60, cache=name).tokens for prompt in PROMPTS]
        for name in ("none", cache)
    )
    assert plain == cached
