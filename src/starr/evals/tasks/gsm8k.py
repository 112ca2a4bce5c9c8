"""GSM8K, 5-shot (Cobbe et al. 2021): prompts and scores of lm_eval 0.4.13's ``gsm8k`` task, byte for byte.

The shots of every test question are drawn in order by one ``random.Random(1234)`` from the training questions, so the
prompts of a part of the test set are those of the whole. In chat form the whole 5-shot prompt is one user turn.
"""

from __future__ import annotations

import random
from pathlib import Path

from starr.evals.grading import extract
from starr.evals.tasks import Grade, Item, Task
from starr.evals.tasks.sources import Row, Source, need

TEST = Source("gsm8k", "test.jsonl", "openai/gsm8k", "main/test-00000-of-00001.parquet")
TRAIN = Source("gsm8k", "train.jsonl", "openai/gsm8k", "main/train-00000-of-00001.parquet")
STOPS = ("Question:", "</s>", "<|im_end|>")
SHOTS, SHOT_SEED = 5, 1234


def load(name: str = "gsm8k", data: Path | None = None) -> Task:
    """The task, with prompts as lm_eval writes them."""
    test, train = TEST.rows(data), TRAIN.rows(data)
    for row in (test[0], train[0]):
        need(row, ("question", "answer"), name)
    return Task(name, items(test, train), grade, "flexible", 256, STOPS)


def items(test: list[Row], train: list[Row]) -> list[Item]:
    """One item per row of the test split, each with its own random shots."""
    draw = random.Random(SHOT_SEED)
    found = []
    for index, row in enumerate(test):
        shots = "".join(shot(s) for s in draw.sample(train, SHOTS))
        prompt = f"{shots}Question: {row['question']}\nAnswer:"
        gold = row["answer"].rsplit("#### ", 1)[-1].strip()
        found.append(Item(f"gsm8k/{index}", prompt, prompt, gold, row["answer"]))
    return found


def shot(row: Row) -> str:
    """A solved example in a prompt."""
    return f"Question: {row['question']}\nAnswer: {row['answer']}\n\n"


def grade(item: Item, text: str) -> Grade:
    """strict and flexible as lm_eval; final is our forgiving rule."""
    found = extract.flexible(text)
    return Grade(
        found,
        {
            "strict": extract.same_text(extract.strict(text), item.gold),
            "flexible": extract.same_text(found, item.gold),
            "final": extract.same_value(extract.final(text), item.gold),
        },
    )
