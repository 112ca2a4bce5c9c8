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
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [lines[0], lines[3]] == [["hole", "1", "probability"], ["hole", "2", "probability"]]
    assert [{lines[1][0], lines[2][0]}, {lines[4][0], lines[5][0]}] == [{"3", "4"}, {"5", "6"}]
    assert lines[1][1] >= lines[2][1]


def test_the_likeliest_choice_stands_first(capsys):
    assert main(["choose", "Tom has 3 apples and buys 4.", "--choices", "7|12"]) == 0
    head, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head == ["choice", "probability"]
    assert float(first[1]) >= float(second[1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a prompt", "--choices", "a|b", "--choices", "c"], "takes --choices once"),
        (["a [MASK]", "--choices", "[1"], "not JSON"),
        (["a [MASK]", "--choices", "a|b", "--choices", "c|d"], "1 hole, and there are choices for 2"),
        (["a prompt", "--choices", "a|a"], "differ"),
        (["[MASK] and [MASK]", "--choices", "a|b"], "2 holes, and there are choices for 1"),
        (["a [[MASK]]", "--choices", "a|b", "--choices", "c|d"], "takes --choices once"),
    ],
)
def test_what_is_no_question_is_one_line(capsys, arguments, words):
    assert main(["choose", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
