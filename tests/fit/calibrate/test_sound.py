"""What is implausible to the model itself."""

import pytest
import torch

import starr
from starr.fit.calibrate.sound import PLAUSIBLE, Written, differing, implausible, log_ratios, until_end
from tests.tiny import tiny_model

PROMPT = [1, 5, 6]
LENGTH = 6


def chances(model, text, place):
    """Log-probabilities at a place with everything from it on masked: a plain forward over one row."""
    row = [*PROMPT, *text[:place], *[model.spec.mask_id] * (len(text) - place)]
    with torch.no_grad():
        logits = model.net.head(model.net(torch.tensor([row])))[0, len(PROMPT) + place].float()
    logits[model.spec.mask_id] = -torch.inf
    return logits.log_softmax(0)


def text_of(model, choose):
    """A text that takes what ``choose`` says of the log-probabilities at each place, left to right."""
    text = [0] * LENGTH
    for place in range(LENGTH):
        scores = chances(model, text, place)
        scores[list(model.spec.eos_ids)] = scores.median()
        text[place] = choose(scores)
    return text


def likeliest(scores):
    return int(scores.argmax())


def test_what_stands_behind_the_end():
    assert until_end([5, 2, 7, 1], (2, 3)) == (5, 2, 2, 2)
    assert until_end([5, 6], (2,)) == (5, 6)


def test_only_what_differs_up_to_the_end_is_looked_at():
    written = Written(PROMPT, [4, 5, 6, 7, 9, 9], [4, 8, 2, 2, 2, 2])
    assert differing(written, (2,)) == [1, 2]
    assert differing(Written(PROMPT, [4, 5], [4, 8]), (2,)) == [1], "a text without an end is looked at whole"


def test_ratios_are_those_of_a_plain_forward():
    model = tiny_model()
    text = text_of(model, likeliest)
    rows = [[*PROMPT, *text[:place], *[model.spec.mask_id] * (LENGTH - place)] for place in range(LENGTH)]
    for token in (4, 9):
        found = log_ratios(model, rows, [(len(PROMPT), place, token) for place in range(LENGTH)])
        expected = [float((s := chances(model, text, place))[token] - s.max()) for place in range(LENGTH)]
        assert found == pytest.approx(expected, abs=1e-4)
    assert log_ratios(model, [], []) == []


def test_the_likeliest_token_is_plausible_and_an_unlikely_one_is_not():
    model = tiny_model()
    text, other = text_of(model, likeliest), [0] * LENGTH
    good, bad = Written(PROMPT, other, text), list(text)
    place = max(range(LENGTH), key=lambda p: float(chances(model, text, p).max() - chances(model, text, p).min()))
    bad[place] = int(chances(model, text, place).argmin())
    assert float((s := chances(model, text, place)).min() - s.max()) < PLAUSIBLE, "else this model cannot show it"
    found = implausible(model, [good, Written(PROMPT, text, bad), Written(PROMPT, text, text)])
    assert found == [[], [place], []]


def test_a_wrong_digit_is_implausible_to_the_bundled_model():
    model = starr.load(dtype="float32")
    prompt = "Tom has 12 apples. Tom buys 8 more. Then Tom gives 5 to a friend. How many apples does Tom have now?"
    from starr.api import build_request
    from starr.options import Options

    request = build_request(model, prompt, Options(max_tokens=48, strategy="threshold:tau=0.95"))
    careful = until_end(starr.generate(model, prompt, strategy="threshold:tau=0.95", max_tokens=48).tokens, (0,))
    shown = model.tokenizer.decode(list(careful))
    digit = shown.index("= 20") + 3
    wrong = shown[:digit] + "7" + shown[digit + 1 :]
    tokens = model.tokenizer.encode(wrong)
    assert len(tokens) == len(careful)
    found = implausible(model, [Written(request.tokens[: request.start], careful, tokens)])
    assert len(found[0]) == 1
