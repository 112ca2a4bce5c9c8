"""Choices with probabilities against a literal computation."""

import math

import pytest
import torch

import starr
from benchmarks.structured_runs import model_of
from starr.decode.choose import answers as reading
from starr.errors import InputError
from tests.tiny import BOS, EOS, MASK


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "shifted"])
def model(request):
    return model_of(7, shift=request.param)


def literal(model, row):
    """Log-probabilities (position, token) of a row, by the whole softmax; the mask id is never an answer."""
    with torch.no_grad():
        logits = model.net.head(model.net(torch.tensor([row])))[0].float()
    logits[:, MASK] = -torch.inf
    found = logits.log_softmax(dim=1)
    return torch.cat([found[:1], found[:-1]]) if model.spec.shift else found


def shares(scores):
    total = sum(map(math.exp, scores.values()))
    return {choice: math.exp(score) / total for choice, score in scores.items()}


def test_a_choice_is_the_product_of_its_tokens_and_its_end(model):
    choices = ["ab", "c", "abc"]
    encode = model.tokenizer.encode
    prompt = [BOS, *encode("abcabc")]
    found = literal(model, [*prompt, *[MASK] * 4])
    scores = {}
    for choice in choices:
        tokens = encode(choice) + [EOS] * (4 - len(choice))
        scores[choice] = sum(float(found[len(prompt) + i, token]) for i, token in enumerate(tokens))
    answer = starr.choose(model, "abcabc", choices)
    assert answer.probabilities == pytest.approx(shares(scores), rel=1e-4)
    assert answer.text == max(scores, key=scores.get)
    assert answer.logprobs == pytest.approx(scores, rel=1e-4)
    assert sum(answer.probabilities.values()) == pytest.approx(1.0)


def test_questions_of_one_text_share_one_forward(model, monkeypatch):
    calls = []
    plain = model.net.forward
    monkeypatch.setattr(model.net, "forward", lambda *given, **more: calls.append(1) or plain(*given, **more))
    encode = model.tokenizer.encode
    one, two = starr.choose(model, "a[MASK]b[MASK]c", [["x", "y"], ["aa", "bb", "cc"]])
    assert len(calls) == 1
    row = [BOS, *encode("a"), MASK, *encode("b"), MASK, MASK, *encode("c")]
    found = literal(model, row)
    first = {choice: float(found[2, encode(choice)[0]]) for choice in ("x", "y")}
    second = {c: float(found[4, encode(c)[0]] + found[5, encode(c)[1]]) for c in ("aa", "bb", "cc")}
    assert one.probabilities == pytest.approx(shares(first), rel=1e-4)
    assert two.probabilities == pytest.approx(shares(second), rel=1e-4)


def test_choices_of_different_lengths_have_holes_of_their_own(model):
    encode = model.tokenizer.encode
    (answer,) = starr.choose(model, "a[MASK]c", [["x", "yz"]])
    short, long = (
        literal(model, [BOS, *encode("a"), MASK, *encode("c")]),
        literal(model, [BOS, *encode("a"), MASK, MASK, *encode("c")]),
    )
    scores = {"x": float(short[2, encode("x")[0]]), "yz": float(long[2, encode("y")[0]] + long[3, encode("z")[0]])}
    assert answer.probabilities == pytest.approx(shares(scores), rel=1e-4)


def test_the_bundled_model_and_the_constrained_decoder_agree():
    """One forward of the constrained decoder finds the same choice: both maximise the same product."""
    model = starr.load()
    for question in ("Tom has 3 apples and buys 4.", "Mia has 9 pens. Mia loses 2 of them."):
        answer = starr.choose(model, question, ["7", "12", "5 apples"])
        room = max(len(model.tokenizer.encode(choice)) for choice in answer.probabilities) + 1
        run = starr.generate(model, question, choices=[*answer.probabilities], max_tokens=room, max_forwards=1)
        assert run.stats.forwards == 1
        assert run.text == answer.text


def test_rows_that_would_fill_the_memory_go_through_several_forwards(model, monkeypatch):
    story, choices = "a[MASK]c", [["x", "yz", "abc"]]
    (whole,) = starr.choose(model, story, choices)
    monkeypatch.setattr(reading, "POSITIONS", 5)
    (parts,) = starr.choose(model, story, choices)
    assert (whole.forwards, parts.forwards) == (1, 3)
    assert parts.probabilities == pytest.approx(whole.probabilities, rel=1e-5)


def test_forwards_hold_rows_within_the_bound():
    rows = [[0] * size for size in (4, 4, 9, 1, 1, 30)]
    calls = list(reading.forwards_of(rows))
    assert [place for call in calls for place in call] == list(range(6))
    assert [call.start for call in calls] == [0]


def test_choices_beyond_all_use_are_refused(model, monkeypatch):
    monkeypatch.setattr(reading, "MOST_POSITIONS", 8)
    with pytest.raises(InputError, match="take 9 positions; at most 8 are allowed"):
        starr.choose(model, "abcab", ["xy"])
