"""What users' expressions mean, and what is refused by name."""

import pytest

from starr.decode.extras.constraints.pattern import whole_match
from starr.errors import InputError
from tests.decode.extras.constraints.toy import accepts, made


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
    ],
)
def test_what_no_automaton_has_is_refused_by_name(pattern, words):
    with pytest.raises(InputError, match=words) as caught:
        whole_match(pattern, "regex")
    assert caught.value.param == "regex"


def test_signs_in_classes_and_behind_a_backslash_are_plain():
    assert whole_match(r"[$^]\$[\]^]", "regex") == r"[$^]\$[\]^]"
