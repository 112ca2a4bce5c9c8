"""A row that fails leaves alone; its neighbours give the tokens that they give without it."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

import starr
from starr.api import build_request
from starr.decode.engine import Engine
from starr.decode.strategies.threshold import Threshold
from starr.options import Options
from tests.tiny import tiny_model


@dataclass(frozen=True, kw_only=True)
class Failing(Threshold):
    """Fails in its third step, after the neighbours' memory was made."""

    name: ClassVar[str] = "failing"

    def begin(self, view):
        return {"count": torch.zeros_like(view.width)}

    def decide(self, view, carry):
        if int(carry["count"].max()) >= 2:
            raise RuntimeError("a bad row")
        decision, _ = super().decide(view, {})
        return decision, {"count": carry["count"] + 1}


def decoded(model, requests, rows=8):
    engine, results, errors = Engine(model, max_rows=rows), {}, {}
    places = {engine.add(request): place for place, request in enumerate(requests)}
    while engine.busy:
        events, failed = engine.step_apart()
        results |= {places[e.id]: e.generation for e in events if e.done}
        errors |= {places[id]: error for id, error in failed.items()}
    return results, errors


@pytest.mark.parametrize("cache", ["none", "dual"])
@pytest.mark.parametrize("trace", [False, True])
def test_only_the_culprit_fails(cache, trace):
    model = tiny_model()
    names = ["starr", "threshold:tau=0.99", "klass", "starr", "confidence"]
    options = [Options(strategy=name, cache=cache, max_tokens=20, block_length=10, trace=trace) for name in names]
    good = [build_request(model, f"prompt {i}", o) for i, o in enumerate(options)]
    alone, _ = decoded(model, good)
    bad = good[1].change(strategy=Failing(tau=0.99))
    results, errors = decoded(model, [good[0], bad, *good[1:]])
    assert list(errors) == [1]
    assert "a bad row" in str(errors[1])
    for place, kept in zip([0, 2, 3, 4, 5], range(5), strict=True):
        assert results[place].tokens == alone[kept].tokens
        assert results[place].stats.forwards == alone[kept].stats.forwards
        if trace:
            assert len(results[place].trace.steps) == len(alone[kept].trace.steps)


@dataclass(frozen=True, kw_only=True)
class FailingAtOnce(Threshold):
    """Fails in the step in which all rows join."""

    name: ClassVar[str] = "failing-at-once"

    def decide(self, view, carry):
        raise RuntimeError("a bad row")


@pytest.mark.parametrize("given", [{"trace": True}, {"model": "bundled-blocks"}])
def test_rows_that_join_in_a_failed_step_are_booked_once(given):
    model = starr.load(given["model"]) if "model" in given else tiny_model()
    options = Options(strategy="threshold", max_tokens=16, trace=True)
    good = [build_request(model, f"prompt {i}", options) for i in range(3)]
    alone, _ = decoded(model, good)
    bad = good[1].change(strategy=FailingAtOnce())
    results, errors = decoded(model, [good[0], bad, *good[1:]])
    assert list(errors) == [1]
    for place, kept in zip([0, 2, 3], range(3), strict=True):
        ours, theirs = results[place], alone[kept]
        assert (ours.tokens, len(ours.trace.steps)) == (theirs.tokens, len(theirs.trace.steps))
        for figure in ("forwards", "positions"):
            assert getattr(ours.stats, figure) == getattr(theirs.stats, figure)
        for phase in ("prefill", "seal"):
            assert getattr(ours.stats, phase).positions == getattr(theirs.stats, phase).positions


def test_a_row_that_fails_when_it_joins_leaves_the_others():
    model = tiny_model()
    good = [build_request(model, "abc", Options(max_tokens=8)) for _ in range(3)]

    class Rude(type(good[0].cache)):
        def query(self, canvas):
            raise ValueError("rude")

        buffered = True

    bad = good[0].change(cache=Rude())
    results, errors = decoded(model, [*good[:2], bad, good[2]], rows=2)
    assert set(results) == {0, 1, 3}
    assert list(errors) == [2]
    assert results[3].tokens == starr.generate(model, "abc", max_tokens=8).tokens


def test_a_fault_of_no_single_row_is_raised(monkeypatch):
    model = tiny_model()
    real, calls = Engine.step, []

    def step(self):
        calls.append(len(self.batch.rows))
        if len(self.batch.rows) + len(self.batch.waiting) > 1:
            raise RuntimeError("only together")
        return real(self)

    monkeypatch.setattr(Engine, "step", step)
    with pytest.raises(RuntimeError, match="only together"):
        decoded(model, [build_request(model, "abc", Options(max_tokens=8)) for _ in range(2)])
