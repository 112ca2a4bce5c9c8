"""A prompt far from what the bundled model was trained on is told apart; its own test prompts never are."""

import json

import pytest

from starr.evals.tasks import grids, lines, list_functions, word_problems
from starr.model.files.hub import BUNDLED_FOLDER
from starr.model.known import Known, list_pairs, read_known
from tests.model.tiny import write_llada

FOREIGN = (
    "What is the capital of France?", "Hello", "1 + 1", "Write a poem about the sea.", "Explain diffusion models.",
    "Who are you?", "Translate to German: the cat sleeps.", "Write a Python function that reverses a string.",
    "Janet's ducks lay 16 eggs per day. She eats three for breakfast every morning.", "import torch", "?", "Да",
    "If f(x) = 2x + 1, what is f(3)?", "asdf qwer", "Tom and Mia went to the sea. Tell me a story about them.",
)  # fmt: skip


@pytest.fixture(scope="module")
def known():
    return read_known(BUNDLED_FOLDER)


@pytest.mark.parametrize("task", [word_problems, list_functions, lines, grids], ids=lambda task: task.TASK)
def test_no_false_alarm_on_the_test_prompts(known, task):
    prompts = [problem.prompt for problem in task.load()]
    assert len(prompts) >= 1000
    assert max(map(known.measure_strangeness, prompts)) < known.limit / 2
    assert not [prompt for prompt in prompts if known.doubt(prompt)]


@pytest.mark.parametrize("prompt", FOREIGN)
def test_foreign_prompts_are_strange(known, prompt):
    assert known.measure_strangeness(prompt) > known.limit
    assert known.doubt(prompt) == known.doubt([{"role": "user", "content": prompt}]) != ""


@pytest.mark.parametrize(
    ("amounts", "told"),
    [(("12", "8"), ""), (("1000", "4000"), "1000 or 4000"), (("100", "8"), "100"), (("12", "1,500"), "1500")],
)
def test_numbers_of_more_digits_than_the_training_has_are_strange(known, amounts, told):
    """Grids have rows such as 1234, so that a long number is strange beside some words only."""
    prompt = "Tom starts with {} apples. Tom buys {} more. How many apples does Tom have now?".format(*amounts)
    assert known.doubt(prompt) == (f"it has never seen a number as large as {told} here" if told else "")


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("Mia has 5 pens.", "this story asks no question"),
        ("Tom has 12 apples. Tom buys 8 more. Then Tom gives 5 to a friend.", "this story asks no question"),
        ("Mia has 5 pens. How many pens does Mia have?", ""),
        ("Mia has[MASK:2] pens.", ""),
        ("[MASK:2] has 5 pens.", ""),
        ("Reverse this line: 1 Tom 2 Ana 3 Leo.", ""),
    ],
)
def test_a_story_without_a_question_is_strange(known, prompt, told):
    assert known.doubt(prompt) == told


def test_token_ids_and_nothing_are_not_judged(known):
    assert [known.doubt(prompt) for prompt in ([5, 6, 7], [], [{"role": "user"}])] == [""] * 3


def test_holes_part_their_neighbours():
    assert list_pairs("Tom has 12 apples.") == ["^ tom", "tom has", "has 00", "00 apples", "apples .", ". $"]
    assert list_pairs("Tom has[MASK:2] apples.") == ["^ tom", "tom has", "apples .", ". $"]


def test_a_number_is_its_digits():
    assert list_pairs('x1 "*" 1,234 5') == ["^ 0", "0 0", "0 0000", "0000 0", "0 $"]


def test_the_file_is_what_the_training_writes(known, tmp_path, monkeypatch):
    from training import known as writer

    monkeypatch.setattr("sys.argv", ["known", str(tmp_path / "known.json")])
    monkeypatch.setattr(writer, "COUNT", 1000)
    writer.main()
    found = read_known(tmp_path)
    assert len(found.pairs) > 0.9 * len(known.pairs)
    assert found.pairs <= known.pairs
    assert (found.about, found.turns, found.limit) == (known.about, known.turns, known.limit)
    assert found.stories == known.stories


def test_other_models_say_nothing(tmp_path):
    assert read_known(write_llada(tmp_path)) is None
    body = {"about": "x", "turns": 1, "limit": 0.5, "stories": ["a"], "pairs": ["a b"]}
    (tmp_path / "known.json").write_text(json.dumps(body))
    assert read_known(tmp_path) == Known("x", 1, 0.5, frozenset({"a b"}), frozenset({"a"}))
