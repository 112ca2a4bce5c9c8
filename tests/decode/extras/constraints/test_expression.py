"""The three options, and what they are as one expression."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starr.decode.extras.constraints.expression import MOST_CHARACTERS, wanted
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
        assert json.loads(wanted(choices=form).text) == ["yes", "no"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"regex": "a" * (MOST_CHARACTERS + 1)}, "characters"),
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
        wanted(**given)
    assert caught.value.param in given


def test_equal_constraints_are_one():
    assert wanted() is None
    assert wanted(json_schema={"type": "null"}) == wanted(json_schema='{"type": "null"}')
