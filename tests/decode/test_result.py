"""Results are values: log-probabilities once, records of the row that they belong to."""

import math
from dataclasses import replace

import pytest
import torch

import starr
from starr.api import build_request
from starr.decode.engine import Engine
from starr.decode.result import KeptStep, Snapshot, StepTensors
from starr.decode.text import CanvasText
from starr.options import Options
from tests.tiny import tiny_model


def test_template_text_has_log_probability_zero_wherever_it_is_read():
    snapshot = Snapshot(CanvasText([5, 6], [False, False], [True, False]), [0, 3], [0.0, 0.5])
    assert snapshot.logprob(0) == 0.0
    assert snapshot.logprob(1) == math.log(0.5)
    found = starr.infill(tiny_model(), "ab[MASK:2]cd")
    assert [p == 0.0 for p in found.logprobs] == [True, True, False, False, True, True]


def test_a_kept_step_reads_its_own_row_and_width():
    columns = {
        name: torch.tensor([[1, 2, 3], [4, 5, 6]]) for name in ("tokens", "proposal", "queried", "decided", "action")
    }
    columns |= {name: torch.zeros(2, 3) for name in ("best", "confidence")}
    columns |= {"masked": torch.ones(2, 3).bool(), "threshold": torch.full((2, 3), torch.nan)}
    tensors = StepTensors(columns, width=torch.tensor([3, 2]), offset=torch.tensor([0, 8]))
    record = KeptStep(4, tensors, 1, 0.5, 77).record()
    assert (record.step, record.window, record.positions) == (4, (8, 10), 77)
    assert record.tokens == [4, 5]
    assert record.threshold is None, "nobody compared with anything"
    assert record.label is None


def test_why_a_row_finished():
    model = tiny_model()
    full = starr.generate(model, "a", max_tokens=20, eos="never", strategy="threshold:tau=0.5")
    assert full.finish_reason == "length"
    assert len(full.tokens) == len(full.commit_steps) == len(full.logprobs) == full.stats.tokens == 20
    assert starr.infill(model, "ab[MASK:2]cd").finish_reason == "stop", "the text was whole"


def decoded(model, requests):
    """The last snapshot of every row, decoded together."""
    engine, found = Engine(model, max_rows=4), {}
    for request in requests:
        engine.add(request)
    while engine.busy:
        found |= {event.id: event.snapshot for event in engine.step()}
    return [found[row] for row in range(len(requests))]


@pytest.mark.parametrize("how", ["starr", "threshold:tau=0.3", "wino", "klass"])
@pytest.mark.parametrize("block_length", [None, 5])
def test_likely_tokens_are_those_of_the_committing_step_alone_and_in_company(how, block_length):
    model = tiny_model()
    options = Options(strategy=how, block_length=block_length, max_tokens=12, eos="never")
    plain = [build_request(model, prompt, options) for prompt in ("a", "bcd")]
    wanting = [replace(request, candidates=count) for request, count in zip(plain, (4, 2), strict=True)]
    together = decoded(model, [*wanting, plain[0]])
    for request, count, here in zip(wanting, (4, 2), together, strict=False):
        (alone,) = decoded(model, [request])
        for place, token in enumerate(alone.text.tokens):
            likely = alone.likely(place)
            assert len(likely) == count
            assert [pair[0] for pair in likely] == [pair[0] for pair in here.likely(place)][:count]
            assert dict(likely)[token] == pytest.approx(alone.logprob(place), abs=1e-2)
    assert together[2].text.tokens == together[0].text.tokens, "nothing else changes"
