"""``starr choose``, as a user calls it."""

import json

import pytest

from starr.cli.main import main


def test_one_question(capsys):
    assert main(["choose", "Tom has 3 apples and buys 4.", "--choices", "7|12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["probabilities"]) == {"7", "12"}
    assert sum(found["probabilities"].values()) == pytest.approx(1.0)
    assert found["text"] == max(found["probabilities"], key=found["probabilities"].get)


def test_questions_of_one_text(capsys):
    text = "Tom has [MASK] apples and [MASK] pens."
    assert main(["choose", text, "--choices", "3|4", "--choices", '["5", "6"]']) == 0
    said = capsys.readouterr().out
    assert all(choice in said for choice in ("3", "4", "5", "6", "probability"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a prompt", "--choices", "a|b", "--choices", "c"], "takes --choices once"),
        (["a [MASK]", "--choices", "[1"], "not JSON"),
        (["a [MASK]", "--choices", "a|b", "--choices", "c|d"], "1 holes"),
        (["a prompt", "--choices", "a|a"], "differ"),
    ],
)
def test_what_is_no_question_is_one_line(capsys, arguments, words):
    assert main(["choose", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
