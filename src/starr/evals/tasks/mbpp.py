"""MBPP, 3-shot, pass@1 on 500 problems (Austin et al. 2021): lm_eval's ``mbpp`` and, in chat form, ``mbpp_instruct``.

The shots are problems 2, 3 and 4 of the prompt split.
"""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from starr.decode.text import before_stop
from starr.evals.grading.code import before_fence, fenced, grade_code
from starr.evals.tasks import Grade, Item, Task
from starr.evals.tasks.sources import Row, Source, need

REPO = "google-research-datasets/mbpp"
TEST = Source("mbpp", "mbpp.jsonl", REPO, "full/test-00000-of-00001.parquet")
PROMPT = Source("mbpp", "mbpp.jsonl", REPO, "full/prompt-00000-of-00001.parquet")
TEST_IDS, SHOT_IDS = range(11, 511), (2, 3, 4)
ASK = "You are an expert Python programmer, and here is your task:"
STOPS = ("[DONE]",)


def load(name: str = "mbpp", data: Path | None = None) -> Task:
    """The task, with prompts in both forms."""
    rows = TEST.rows(data)
    need(rows[0], ("task_id", "text", "code", "test_list"), name)
    shots = sorted((r for r in PROMPT.rows(data) if r["task_id"] in SHOT_IDS), key=lambda r: int(r["task_id"]))
    lead = "".join(f"{question(s)}{s['code']}\n[DONE]\n\n" for s in shots)
    chat_lead = "".join(f"{chat_question(s)}\n```python\n{s['code']}\n```\n\n" for s in shots)
    return Task(
        name, [item(row, lead, chat_lead) for row in rows if row["task_id"] in TEST_IDS], grade, "strict", 256, STOPS
    )


def question(row: Row) -> str:
    """A row as a base prompt asks it."""
    tests = "\n".join(row["test_list"][:3])
    return f"{ASK} {row['text']} Your code should pass these tests:\n\n{tests}\n[BEGIN]\n"


def chat_question(row: Row) -> str:
    """A row as a chat asks it."""
    tests = "\n".join(row["test_list"][:3])
    return f"{ASK}\n{row['text']}\nYour code should pass these tests:\n{tests}"


def item(row: Row, lead: str, chat_lead: str) -> Item:
    """A row as a question after its shots."""
    setup = row.get("test_setup_code") or ""
    tests = "\n".join([*names(row["code"], setup), *row["test_list"]])
    return Item(
        f"mbpp/{row['task_id']}",
        lead + question(row),
        chat_lead + chat_question(row),
        row["test_list"][0],
        row["code"],
        "\n```python\n",
        {"tests": tests, "setup": setup},
    )


def names(*sources: str) -> list[str]:
    """Lines that give the tests what the top of the reference and of the setup imports, defines and assigns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # references have escapes that Python frowns upon
        tops = [node for source in sources for node in ast.parse(source).body]
    imports = [ast.unparse(node) for node in tops if isinstance(node, ast.Import | ast.ImportFrom)]
    found = [node.name for node in tops if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    targets = [target for node in tops if isinstance(node, ast.Assign) for target in node.targets]
    found += [target.id for target in targets if isinstance(target, ast.Name)]
    return imports + [f"{name} = program.{name}" for name in found]


def grade(item: Item, text: str) -> Grade:
    """strict: the text up to the stop or the closing fence; flexible: also any fenced function."""
    code = before_fence(before_stop(text, STOPS))
    return grade_code(code, fenced(text, "def "), item.facts["tests"], item.facts["setup"])
