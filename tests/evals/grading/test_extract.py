"""Extraction cases met in the literature and in models' answers; the list grows."""

import pytest

from starr.evals.grading.extract import boxed, final, flexible, numbers, same_text, same_value, strict, value

FINAL = [
    ("The answer is 42.", "42"),
    ("the answer is: 42", "42"),
    ("Answer: 1,234", "1234"),
    ("Answer = 7 apples", "7"),
    ("#### 18", "18"),
    ("####18", "18"),
    ("#### $1,200", "1200"),
    ("#### -5", "-5"),
    ("#### −5", "-5"),
    ("#### 3.50", "3.5"),
    ("#### 18.", "18"),
    ("#### 20%", "20"),
    ("She has 3 + 4 = 7 apples.\n#### 7", "7"),
    ("First #### 3 then again #### 4", "4"),
    ("So it costs $2.50.", "2.5"),
    ("So it costs \\$2.50", "2.5"),
    ("It costs $1,234,567.89 in total.", "1234567.89"),
    ("They need 12 eggs and 3 cups.", "3"),
    ("10 - 3 = 7", "7"),
    ("10-3=7", "7"),
    ("The temperature fell to -12 degrees", "-12"),
    ("It is 3/4 of the cake.", "3/4"),
    ("The final answer is \\boxed{\\frac{3}{4}}.", "3/4"),
    ("\\boxed{\\dfrac{-1}{2}}", "-1/2"),
    ("\\boxed{1{,}000}", "1000"),
    ("\\boxed{42\\text{ km}}", "42"),
    ("\\boxed{5} is wrong, so \\boxed{6}", "6"),
    ("We get \\boxed{\\$12}", "12"),
    ("He ran .5 miles", "0.5"),
    ("0.25", "1/4"),
    ("half: 2 / 4", "1/2"),
    ("So 5 dollars. The answer is 5 dollars and not 6", "5"),
    ("€30", "30"),
    ("The answer is $\\frac12$", "1/2"),
]


@pytest.mark.parametrize(("text", "gold"), FINAL)
def test_final_finds_the_answer(text, gold):
    assert same_value(final(text), gold), (final(text), gold)


@pytest.mark.parametrize("text", ["", "no number here", "####", "The answer is unknown", "..."])
def test_final_finds_nothing(text):
    assert value(final(text)) is None


STRICT = [
    ("#### 18", "18"),
    ("#### 1,200", "1,200"),
    ("#### -3.5", "-3.5"),
    ("#### 7 #### 8", "7"),
    ("####18", None),
    ("#### $5", None),
    ("The answer is 18", None),
]


@pytest.mark.parametrize(("text", "expected"), STRICT)
def test_strict(text, expected):
    assert strict(text) == expected


FLEXIBLE = [
    ("a 12 b 13", "13"),
    ("it is $1,200.", "$1,200."),
    ("x = -5", "-5"),
    ("7", "7"),
    ("3 and ..", ".."),
    ("none", None),
    ("#### 72\n", "72"),
]


@pytest.mark.parametrize(("text", "expected"), FLEXIBLE)
def test_flexible(text, expected):
    assert flexible(text) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        ("1,200", "1200", True),
        ("$18.", "18", True),
        ("18.0", "18", False),
        ("#### 18", "18", True),
        (None, "18", False),
    ],
)
def test_same_text(answer, gold, same):
    assert same_text(answer, gold) is same


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("\\boxed{a{b}c}", "a{b}c"),
        ("\\fbox{3}", "3"),
        ("\\boxed{cut", None),
        ("none", None),
        ("\\boxed{1} \\boxed{2}", "2"),
    ],
)
def test_boxed(text, inner):
    assert boxed(text) == inner


def test_numbers_are_listed_left_to_right():
    assert numbers("1 apple, 2,000 pears and -3.5 plums; 4/5") == ["1", "2,000", "-3.5", "4/5"]


def test_division_by_zero_is_no_number():
    assert value("3/0") is None
