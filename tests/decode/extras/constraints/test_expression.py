"""The three options, what users' expressions mean, and what is refused by name."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.extras.constraints.expression import MAX_CHARACTERS, parse_constraint, rewrite_pattern
from starr.errors import InputError
from tests.decode.extras.constraints.toy import accepts, made


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=8, unique=True), other=st.text(max_size=6))
def test_choices_are_taken_literally(texts, other):
    texts = [text for text in texts if "\U0010ffff" not in text] or ["a"]
    automaton = made(choices=texts)
    assert all(accepts(automaton, text) for text in texts)
    assert accepts(automaton, other) == (other in texts)


def test_choices_are_a_list_or_text():
    for form in (["yes", "no"], ("yes", "no"), "yes|no", '["yes", "no"]'):
        assert json.loads(parse_constraint(choices=form).text) == ["yes", "no"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"regex": "a" * (MAX_CHARACTERS + 1)}, "characters"),
        ({"regex": ""}, "not empty"),
        ({"regex": "a", "choices": ["b"]}, "Only one"),
        ({"choices": []}, "1 to"),
        ({"choices": ["a", "a"]}, "differ"),
        ({"choices": [1]}, "texts"),
        ({"choices": "[not json"}, "not JSON"),
        ({"choices": "a||b"}, "none of them empty"),
        ({"json_schema": "{"}, "not JSON"),
        ({"json_schema": 3}, "must be a JSON schema"),
    ],
)
def test_what_is_no_constraint_is_refused_by_name(given, words):
    with pytest.raises(InputError, match=words) as caught:
        parse_constraint(**given)
    assert caught.value.param in given


def test_equal_constraints_are_one():
    assert parse_constraint() is None
    assert parse_constraint(json_schema={"type": "null"}) == parse_constraint(json_schema='{"type": "null"}')


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a|ab", ["a", "ab"], ["", "b", "aba"]),  # every alternative counts, not the first that ends
        ("a+?", ["a", "aaa"], [""]),
        ("^a$", ["a"], ["^a$"]),
        (r"a\$", ["a$"], ["a"]),
        ("[^-a]+x", ["bx", "]x"], ["ax", "-x"]),
        ("[^]a]+", ["b", "é"], ["]", "a"]),
        (".*", ["", "é x", "漢"], ["\n"]),
        ("(?s).*", ["\n", "é"], []),
        (r"\D{2}", ["ab", "é\n"], ["a1"]),
        ("[[:alpha:]]+", ["ab"], ["a1"]),
        ("(?i)yes|no", ["YES", "No"], ["y"]),
        (r"[\]x]{2}", ["]x"], ["y]"]),
        (r"\<a\>", ["<a>"], ["a"]),
        ("(yes|yes sir|no)", ["yes", "yes sir"], ["yes "]),
    ],
)
def test_an_expression_means_the_whole_text(pattern, yes, no):
    automaton = made(regex=pattern)
    assert [text for text in yes if not accepts(automaton, text)] == []
    assert [text for text in no if accepts(automaton, text)] == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a(?=b)", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"\bfoo", "word boundary"),
        ("a^b", "anchor"),
        (r"(a)\1", "back reference"),
        ("(?>a)b", "atomic group"),
        ("a*+b", "possessive repeat"),
        ("(ab){2,3}+c", "possessive repeat"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(pattern, words):
    with pytest.raises(InputError, match=rf"{words}.*which cannot be used here\.") as caught:
        rewrite_pattern(pattern, "regex")
    assert caught.value.param == "regex"


def test_signs_in_classes_and_behind_a_backslash_are_plain():
    assert rewrite_pattern(r"[$^]\$[\]^]", "regex") == r"[$^]\$[\]^]"


TRICKY = [
    "²",
    "ⅷ",
    "\u0301",
    "\u200d",
    "\x1c",
    "\u0660",
    "\U0001e4f6",
    "\U00031350",
    "é",
    "\xa0",
    "_",
    "‿",
    "\ufeff",
    "7",
    " ",
]
CLASSES = [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"[\w-]", r"[^\w]", r"[^\W\d]", r"[^\s]", r"[\s\S]", r"[^\D]", "."]


@pytest.mark.parametrize("pattern", CLASSES)
def test_a_class_takes_nothing_that_python_does_not(pattern):
    automaton = made(regex=pattern)
    assert [text for text in TRICKY if accepts(automaton, text) and not re.fullmatch(pattern, text)] == []
    assert any(accepts(automaton, text) for text in TRICKY)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\d{2}$", ["12"], ["\u0661\u0662"]),  # as JavaScript, which JSON schemas are written for
        (r"\w+", ["az_9"], ["é"]),
        (r"\w\s\w", ["a b"], ["a\tb"]),
        ("a.c", ["abc", "aéc"], ['a"c', "a\\c", "a\nc"]),
        ("[^@]+@[^@]+", ["me@home"], ['"@a', "a@\n"]),
    ],
)
def test_a_pattern_within_a_json_string_lets_no_quote_in(pattern, yes, no):
    automaton = made(json_schema={"type": "string", "pattern": pattern})
    assert [text for text in yes if not accepts(automaton, f'"{text}"')] == []
    assert [text for text in no if accepts(automaton, f'"{text}"')] == []
