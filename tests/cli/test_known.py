"""A newcomer who asks the bundled model for too much is told so, once and quietly."""

import json

import pytest

TOM = "Tom has 12 apples. Tom buys 8 more. Then Tom gives 5 to a friend. How many apples does Tom have now?"


@pytest.mark.parametrize(("prompt", "told"), [("What is the capital of France?", True), (TOM, False)])
def test_run_says_that_a_prompt_is_strange(starr, prompt, told):
    result = starr("run", prompt, "--max-tokens", 16)
    assert result.code == 0
    assert ("may be nonsense" in result.err) == told
    assert result.err.count("\n") == 1 + told
    assert "nonsense" not in starr("run", prompt, "--max-tokens", 16, "--quiet").err


def test_the_words_that_the_model_never_saw_are_named(starr):
    """A newcomer's own name instead of one of the model's: the reason is the name, not the problem."""
    told = starr("run", TOM.replace("Tom", "Wilhelmina"), "--max-tokens", 8).err
    assert 'it has never seen "wilhelmina", so' in told
    assert "this prompt is unlike those, so" in starr("run", "1 + 1", "--max-tokens", 8).err


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        (TOM.replace("12", "1000"), "it has never seen a number as large as 1000 here, so"),
        ("Mia has 5 pens.", "this story asks no question, so"),
    ],
)
def test_large_numbers_and_stories_without_a_question_are_told(starr, prompt, why):
    assert why in starr("run", prompt, "--max-tokens", 8).err


def test_a_file_of_prompts_says_it_once_with_a_count(starr, tmp_path):
    source = tmp_path / "prompts.jsonl"
    prompts = [TOM, "Hello", {"prompt": [{"role": "user", "content": "Who are you?"}]}]
    source.write_text("\n".join(map(json.dumps, prompts)))
    flags = ("run", "--input", source, "--max-tokens", 4)
    told = starr(*flags).err
    assert "2 prompts of 3 are unlike those, so their answers may be nonsense" in told
    assert told.count("nonsense") == 1
    assert starr(*flags, "--quiet").err == ""
    source.write_text(json.dumps("Hello"))
    assert "1 prompt of 1 is unlike those, so its answer may be nonsense" in starr(*flags).err
    source.write_text(json.dumps(TOM))
    assert "nonsense" not in starr(*flags).err


def test_choose_says_it_too(starr):
    assert "may be nonsense" in starr("choose", "Is the sky blue?", "--choices", "yes|no").err
    assert starr("choose", "Is the sky blue?", "--choices", "yes|no", "--quiet").err == ""
    assert "nonsense" not in starr("choose", TOM, "--choices", "15|16").err


def test_run_says_what_fills_holes(starr, tmp_path):
    text = "Now there are 12 + 8 =[MASK:2] apples."
    for prompt, flags, told in ((text, (), 1), (text, ("--infill",), 0), (text, ("--quiet",), 0), (TOM, (), 0)):
        said = starr("run", prompt, *flags, "--max-tokens", 4)
        assert said.code == 0
        assert said.err.count("--infill fills [MASK:n]") == told
    source = tmp_path / "prompts.jsonl"
    source.write_text("\n".join([json.dumps(text)] * 2))
    assert starr("run", "--input", source, "--max-tokens", 4).err.count("--infill fills [MASK:n]") == 1


def test_race_says_it_once(starr):
    result = starr("race", "Hello", "--strategies", "threshold,starr", "--max-tokens", 8)
    assert result.err.count("may be nonsense") == 1


def test_chat_answers_every_turn_where_a_model_knows_single_questions(starr, monkeypatch):
    lines = iter([TOM, TOM.replace("12", "13"), "/history"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines, None) or (_ for _ in ()).throw(EOFError))
    result = starr("chat", "--max-tokens", 64)
    assert result.code == 0
    assert "#### 15" in result.out
    assert "#### 16" in result.out
    assert result.err.count("single questions only") == 1
    assert result.out.count("user: ") == 2
