"""lm_eval over local tasks: YAML files and rows in a folder, nothing from the hub."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import lm_eval
from lm_eval.tasks import TaskManager

from starr.cli.lm_eval import TASKS

GSM8K = Path(lm_eval.__file__).parent / "tasks" / "gsm8k" / "gsm8k.yaml"

CHOICE = """task: which
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{question}}}} Answer:"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{right}}}}"
metric_list:
  - metric: acc
  - metric: acc_norm
"""

ROLLING = """task: wording
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
output_type: loglikelihood_rolling
test_split: test
doc_to_text: ""
doc_to_target: "{{{{question}}}}"
metric_list:
  - metric: word_perplexity
  - metric: bits_per_byte
"""

LOCAL_GSM8K = """include: {original}
task: gsm8k_local
dataset_path: json
dataset_name: null
dataset_kwargs: {{data_files: {{train: {data}/train.jsonl, test: {data}/test.jsonl}}}}
"""


def write_tasks(folder: Path, gsm8k: Path | None = None) -> Path:
    """A folder for ``--include_path``: the bundled tasks, a choice, a perplexity, GSM8K from local files."""
    shutil.copytree(TASKS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    rows = folder / "rows.jsonl"
    choices = [["yes", "no"], ["red", "blue", "a dark green"], ["one", "two"]]
    lines = [{"question": f"Which of {c}?", "choices": c, "right": i % len(c)} for i, c in enumerate(choices)]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "which.yaml").write_text(CHOICE.format(rows=rows))
    (folder / "wording.yaml").write_text(ROLLING.format(rows=rows))
    if gsm8k is not None:
        (folder / "gsm8k_local.yaml").write_text(LOCAL_GSM8K.format(original=GSM8K, data=gsm8k))
    return folder


def evaluate(lm, folder, *tasks, **more):
    """``simple_evaluate`` over the folder's tasks alone."""
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    return lm_eval.simple_evaluate(model=lm, tasks=list(tasks), task_manager=manager, bootstrap_iters=0, **more)


def answers(results, task):
    """What the model said, by document."""
    return {sample["doc_id"]: sample["resps"] for sample in results["samples"][task]}
