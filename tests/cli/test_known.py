"""A newcomer who asks the bundled model for too much is told so, once and quietly."""

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
