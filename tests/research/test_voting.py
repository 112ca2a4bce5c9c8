from __future__ import annotations

import math
import re

import pytest

from starr.errors import InputError
from starr.research.voting import vote

PIECES = {"1": "1", "2": "2", "3": "3", "4": "4", "8": "#", "9": "<end>"}
MASK = 0


def step(window, tokens, proposal):
    return {
        "window": window, "tokens": tokens, "masked": [token == MASK for token in tokens], "proposal": proposal,
    }  # fmt: skip


def trace(*steps, tokens=(8, 4)):
    return {"steps": list(steps), "tokens": list(tokens), "pieces": PIECES}


def last_number(text):
    found = re.findall(r"\d", text)
    return found[-1] if found else None


RUN = trace(
    step([0, 2], [MASK, MASK], [8, 3]),
    step([0, 2], [8, MASK], [1, 3]),
    step([0, 2], [8, MASK], [1, 4]),
)


def test_fixed_weights_count_steps():
    assert vote(RUN, last_number, weights="fixed").totals == {"3": 2.0, "4": 1.0}
    assert vote(RUN, last_number, weights="fixed").answer == "3"


def test_linear_weights_and_the_first_of_equals():
    found = vote(RUN, last_number, weights="linear")
    assert found.totals == pytest.approx({"3": 1 / 3 + 2 / 3, "4": 1.0})
    assert found.answer == "3"


def test_exponential_weights_favour_late_steps():
    found = vote(RUN, last_number, weights="exp", alpha=5.0)
    assert found.totals == pytest.approx({"3": 1 + math.exp(5 / 3), "4": math.exp(10 / 3)})
    assert found.answer == "4"
    assert found.answers == ["3", "3", "4"]


def test_alpha_zero_is_fixed():
    assert vote(RUN, last_number, alpha=0.0).totals == vote(RUN, last_number, weights="fixed").totals


def test_an_end_of_text_cuts_and_earlier_windows_are_settled():
    run = trace(step([1, 4], [MASK, MASK, MASK], [1, 9, 2]), tokens=[3, 1, 9, 2])
    assert vote(run, last_number).answers == ["2"]
    assert vote(run, last_number, ends=(9,)).answers == ["1"]
    assert vote(run, lambda text: text, ends=(9,)).answers == ["31"]


def test_no_answer_at_all():
    assert vote(RUN, lambda text: None).answer is None


def test_unknown_weights_are_refused():
    with pytest.raises(InputError, match=r"liner.*linear"):
        vote(RUN, last_number, weights="liner")
