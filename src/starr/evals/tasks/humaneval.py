"""HumanEval, 0-shot, pass@1 (Chen et al. 2021): lm_eval's ``humaneval`` and, in chat form, ``humaneval_instruct``."""

from __future__ import annotations

from pathlib import Path

from starr.evals.grading.code import before_fence, fenced, grade_code
from starr.evals.tasks import Grade, Item, Task
from starr.evals.tasks.sources import Row, Source, need

TEST = Source(
    "humaneval", "HumanEval.jsonl.gz", "openai/openai_humaneval", "openai_humaneval/test-00000-of-00001.parquet"
)
STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")


def load(name: str = "humaneval", data: Path | None = None) -> Task:
    """The task, with prompts in both forms."""
    rows = TEST.rows(data)
    need(rows[0], ("task_id", "prompt", "test", "entry_point", "canonical_solution"), name)
    return Task(name, [item(row) for row in rows], grade, "strict", 512, STOPS)


def item(row: Row) -> Item:
    """A row as a question."""
    prompt = row["prompt"]
    ask = "Write a solution to the following problem and make sure that it passes the tests:"
    return Item(
        row["task_id"],
        prompt,
        f"{ask}\n```python\n{prompt}\n```\n",
        row["entry_point"],
        row["canonical_solution"],
        f"Here is the completed function:\n```python\n{prompt}\n",
        {"prompt": prompt, "test": row["test"], "entry_point": row["entry_point"]},
    )


def grade(item: Item, text: str) -> Grade:
    """strict: the prompt continued by the text; flexible: also a whole function in a fence."""
    prompt, name = item.facts["prompt"], item.facts["entry_point"]
    helpers = f"{prompt}\n    pass\n{name} = program.{name}"  # the tests use what the prompt defines
    tests = f"{helpers}\n{item.facts['test']}\ncheck({name})"
    block = fenced(text, f"def {name}")
    return grade_code(prompt + before_fence(text), None if block is None else f"{prompt}\n    pass\n{block}", tests)
