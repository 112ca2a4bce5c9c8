"""How questions are laid out, and what is no question."""

import pytest

import starr
from benchmarks.structured_runs import model_of
from starr.decode.choose.questions import asks_within, questions_behind, questions_within
from starr.errors import InputError
from tests.tiny import BOS, EOS, MASK


@pytest.fixture(scope="module")
def model():
    return model_of(7, shift=False)


def test_behind_a_prompt_shorter_choices_end_in_end_of_texts(model):
    encode = model.tokenizer.encode
    rows, ((question,),) = questions_behind(model, [BOS, 5], ["ab", "c"])
    assert rows == [[BOS, 5, MASK, MASK, MASK]]
    assert question.fillings == {"ab": [*encode("ab"), EOS], "c": [*encode("c"), EOS, EOS]}
    assert list(question.places) == [2, 3, 4]


def test_every_length_of_a_hole_is_a_row_of_its_own(model):
    encode = model.tokenizer.encode
    rows, asked = questions_within(model, "a[MASK]b[MASK]", [["x", "yz"], ["c"]])
    a, b = encode("a"), encode("b")
    assert rows == [[BOS, *a, MASK, MASK, *b, MASK], [BOS, *a, MASK, *b, MASK]]
    assert [[(part.row, part.start, [*part.fillings]) for part in parts] for parts in asked] == [
        [(0, 2, ["yz"]), (1, 2, ["x"])],
        [(0, 5, ["c"])],
    ]


def test_a_text_with_one_hole_takes_its_choices_alone(model):
    alone, (listed,) = (starr.choose(model, "a[MASK]b", given) for given in (["x", "yz"], [["x", "yz"]]))
    assert alone.probabilities == listed.probabilities
    assert asks_within("a[MASK]b")


def test_a_literal_mask_leaves_a_prompt_a_prompt(model):
    assert not asks_within("a [[MASK]] b")
    assert set(starr.choose(model, "a [[MASK]] b", ["x", "yz"]).probabilities) == {"x", "yz"}


@pytest.mark.parametrize(
    ("prompt", "choices", "words"),
    [
        ("a", [], "1 to"),
        ("a", ["x", "x"], "differ"),
        ("a[MASK]", [["x"], ["y"]], "1 hole,"),
        ("[MASK] and [MASK]", ["yes", "no"], "2 holes, and there are choices for 1"),
        ("[[MASK]]", [["x"]], "0 holes,"),
        (" ", ["x"], "empty"),
        ("a" * 300, ["x"], "positions"),
    ],
)
def test_what_is_no_question_is_refused(model, prompt, choices, words):
    with pytest.raises(InputError, match=words):
        starr.choose(model, prompt, choices)
