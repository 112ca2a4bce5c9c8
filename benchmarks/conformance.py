"""Our strategies beside whole loops of their rules: `python -m benchmarks.conformance --limit 30`.

The loops are our own transcriptions (tests/reference): the bare network, one row, float64 probabilities, no grid and no
cache. Counts go to docs/results/conformance.json, one line as soon as it is known; docs/conformance.md is made from
that file alone (``--page`` makes nothing else). Lines that the same weights gave for as many prompts are kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import starr
from benchmarks.stored import Stored
from starr.evals.run.runs import fingerprint
from starr.evals.tasks import load_task
from starr.research.reproduce import context
from starr.research.reproduce.result import table
from tests.reference.cases import CASES
from tests.reference.conformance import Case, compared

STORED = Stored("conformance", "Strategies and caches beside whole loops of their rules", "../conformance.md")
HEAD = """# Conformance

Each strategy and cache ran through the whole engine (batches, grids, `enforce`, end-of-text) beside a loop that shares
nothing with it: the bare network, one row, float64 probabilities, no rounding. The loops and rules are our own
transcriptions of the papers or of the released code (`tests/reference`; commits are those at which it was read). No
code of others is part of this repository. The table counts prompts with the same tokens up to the end of the text, and
with the same number of forwards. Both end a row at an end-of-text that has nothing masked before it, which the released
loops do not. The same comparison runs in the tests on small random weights, with LLaDA's and Dream's (shifted) logits.

Not here, and compared step by step with transcriptions instead (`tests/decode`): `starr`, whose rule is the paper's
alone (see [strategies](strategies.md)); `calibrated` and `peaks`, which are ours; `learn2pd`, whose filter is fitted
here; `remdm`, `origin` and `random`, which draw at random; `freedave`, whose text must be that of `confidence`; and the
caches `vicinity`, `adaptive`, `exact`, `dkv-prefill`, `dkv-pd` and `dkv-greedy`. Where no commit stands, none was noted
when the code was read.
"""


def line(case: Case, model: Any, prompts: list[list[int]], length: int) -> dict[str, Any]:
    found = compared(model, case, prompts, length)
    return {
        "strategy or cache": case.name.format(half=length // 2),
        "block": case.block,
        "whose rule": case.whose,
        "same tokens": f"{found.tokens} of {found.prompts}",
        "same forwards": f"{found.forwards} of {found.prompts}",
        "what differs, and why": case.differs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Same tokens and forwards as whole loops of the rules.")
    parser.add_argument("--limit", type=int, default=30, help="prompts of word-problems")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--only", nargs="*", help="lines of the table, by their first column")
    parser.add_argument("--page", action="store_true", help="make the page from stored results, and nothing else")
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    if not options.page:
        measure(options)
    stored = json.loads((options.docs / "results" / "conformance.json").read_text(encoding="utf8"))
    write_page(stored, options.docs / "conformance.md")


def measure(options: argparse.Namespace) -> None:
    folder = options.docs / "results"
    model, task = starr.load(dtype="float32"), load_task("word-problems")
    prompts = [model.tokenizer.chat([{"role": "user", "content": i.chat}]) for i in task.items[: options.limit]]
    command = f"python -m benchmarks.conformance --limit {options.limit} --max-tokens {options.max_tokens}"
    where = context(command, f"{model.name} (weights {fingerprint(model)}, float32)", task.name)
    rows = {key_of(row): row for row in STORED.known(folder, where)}
    for case in CASES:
        name = case.name.format(half=options.max_tokens // 2)
        done = rows.get((name, case.block), {}).get("same tokens", "").endswith(f" of {options.limit}")
        if done or (options.only and name not in options.only):
            continue
        found = line(case, model, prompts, options.max_tokens)
        print(json.dumps(found), flush=True)
        rows[key_of(found)] = found
        STORED.write(folder, where, list(rows.values()))


def key_of(row: dict[str, Any]) -> tuple[str, int | None]:
    return row["strategy or cache"], row["block"]


def write_page(body: dict[str, Any], path: Path) -> None:
    """docs/conformance.md, from the stored counts."""
    where = f"`{body['command']}` · model {body['model']} · task {body['task']} · {body['machine']} · {body['date']}"
    path.write_text("\n\n".join([HEAD.strip(), table(body["rows"]), where]) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
