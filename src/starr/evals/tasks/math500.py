"""MATH-500, 4-shot (Hendrycks et al. 2021, Lightman et al. 2023): prompts of lm_eval 0.4.13's ``minerva_math500``.

The four fixed examples are read from the installed lm_eval's own source, which is parsed and not imported (importing it
demands one exact antlr version). Scores: ``verify`` is math-verify over the whole text against the gold solution;
``strict`` asks for the sentence of the examples, "Final Answer: The final answer is ... I hope it is correct."
"""

from __future__ import annotations

import ast
import importlib.util
import re
import threading
from pathlib import Path
from typing import Any

from starr.errors import LoadError
from starr.evals.tasks import Grade, Item, Task
from starr.evals.tasks.sources import Row, Source, need
from starr.optional import need as need_extra

TEST = Source("math500", "test.jsonl", "HuggingFaceH4/MATH-500", "test.jsonl")
SENTENCE = re.compile(r"Final Answer: The final answer is(.*?)\. I hope it is correct", re.DOTALL)
SECONDS = 5


def load(name: str = "math500", data: Path | None = None) -> Task:
    """The task, with prompts as lm_eval writes them."""
    need_extra("eval", "The score of math500")
    need_extra("lm-eval", "The prompt of math500")
    rows = TEST.rows(data)
    need(rows[0], ("problem", "solution", "answer"), name)
    lead = "".join(f"{question(s)} {s['solution']}\n\n" for s in shots())
    return Task(name, [item(i, row, lead) for i, row in enumerate(rows)], grade, "verify", 512, ("Problem:",))


def question(row: Row) -> str:
    """A row as a prompt asks it."""
    return f"Problem:\n{row['problem']}\n\nSolution:"


def item(index: int, row: Row, lead: str) -> Item:
    """A row as a question after its shots."""
    prompt = lead + question(row)
    sentence = f"Final Answer: The final answer is ${row['answer']}$. I hope it is correct."
    facts = {"solution": row["solution"]}
    return Item(f"math500/{index}", prompt, prompt, row["answer"], f"{row['solution']}\n{sentence}", facts=facts)


def shots() -> list[Row]:
    """The literal list that lm_eval's ``list_fewshot_samples`` returns."""
    spec = importlib.util.find_spec("lm_eval")
    if spec is None or not spec.submodule_search_locations:
        raise LoadError("The installed lm_eval has no files.", hint="pip install --force-reinstall lm_eval")
    path = Path(spec.submodule_search_locations[0]) / "tasks" / "minerva_math" / "utils.py"
    try:
        tree = ast.parse(path.read_text(encoding="utf8"))
        functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
        function = next(f for f in functions if f.name == "list_fewshot_samples")
        returned = next(n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None)
        return list(ast.literal_eval(returned.value))  # type: ignore[arg-type]
    except (OSError, SyntaxError, StopIteration, ValueError) as error:
        raise LoadError(f"The installed lm_eval has no MATH examples ({type(error).__name__}).") from None


def grade(item: Item, text: str) -> Grade:
    """The stated answer, compared as mathematics with the solution's."""
    sentence = SENTENCE.search(text)
    answer = sentence.group(1).strip() if sentence else None
    gold = parse(item.facts["solution"]) or parse(f"${item.gold}$")
    stated = parse(f"${item.gold}$")
    found = parse(text)
    return Grade(
        answer or (str(found[-1]) if found else None),
        {
            "strict": answer is not None and (answer.strip("$ ") == item.gold or same(stated, parse(answer))),
            "verify": same(gold, found),
        },
    )


def parse(text: str) -> list[Any]:
    """The expressions that math_verify finds in a text."""
    from math_verify import parse as math_parse

    return list(math_parse(text, parsing_timeout=limit()))


def same(gold: list[Any], found: list[Any]) -> bool:
    """Whether two answers are equal as mathematics."""
    from math_verify import verify

    return bool(verify(gold, found, timeout_seconds=limit()))


def limit() -> int | None:
    """math-verify's clock is a signal, which only the main thread may set."""
    return SECONDS if threading.current_thread() is threading.main_thread() else None
