"""Right, formed and both, from a text to results, pairs and report."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from starr.evals.run.evaluate import run_evaluation
from starr.evals.run.progress import so_far
from starr.evals.run.report import fault, page
from starr.evals.run.results import ANSWER_ONLY, compare, summarise
from starr.evals.run.runner import graded
from starr.evals.run.runs import Run
from starr.evals.stats import wilson
from starr.evals.tasks import load_task
from starr.evals.tasks.bundled import judge
from tests.evals.toy import toy_job


class Written:
    """As much of a generation as grading reads."""

    def __init__(self, text, stats):
        self.text, self.stats, self.finish_reason, self.prompt_tokens = text, stats, "stop", 1


@pytest.fixture(scope="module")
def stats():
    import starr
    from tests.tiny import tiny_model

    return starr.generate(tiny_model(), "ab", strategy="threshold", max_tokens=4, chat=False).stats


def sample_of(stats, item, task, text, run="a"):
    return graded(task, Run(run), int(item.id.rsplit("-", 1)[1]), item, Written(text, stats), 0.1)


@pytest.mark.parametrize(("text", "right", "formed"), [
    ("So Tom has 4 * 6 = 24 pens. #### {n}", True, False), ("{reference}", True, True), ("#### 1", False, False),
])  # fmt: skip
def test_a_sample_has_all_three(stats, text, right, formed):
    task = load_task("word-problems")
    item = task.items[0]
    sample = sample_of(stats, item, task, text.format(n=item.gold, reference=item.reference))
    assert (sample.right, sample.formed, sample.both) == (right, formed, right and formed)
    assert sample.kind == item.kind == "2-3"


def test_without_a_rule_for_form_both_is_right(stats):
    task = replace(load_task("word-problems"), formed=None)
    item = task.items[0]
    sample = sample_of(stats, item, task, f"#### {item.gold}")
    assert (sample.right, sample.formed, sample.both) == (True, None, True)
    figures = summarise([sample])
    assert figures["formed"] is None
    assert figures["both"] == figures["right"] == 1.0


def test_the_line_so_far_tells_right_from_both(stats):
    task = load_task("word-problems")
    first, second = task.items[:2]
    samples = [
        sample_of(stats, first, task, f"So. #### {first.gold}"), sample_of(stats, second, task, second.reference)
    ]  # fmt: skip
    line = so_far(SimpleNamespace(of=lambda run: samples), "starr")
    assert re.findall(r"[\d.]+ % (\w+)", line) == ["right", "both"]
    assert re.findall(r"([\d.]+) %", line) == ["100.0", "50.0"]
    answers = [replace(sample, formed=None) for sample in samples]
    line = so_far(SimpleNamespace(of=lambda run: answers), "starr")
    assert re.findall(r"[\d.]+ % (\w+)", line) == ["right"]


def test_figures_and_pairs_go_by_both(stats):
    task = load_task("word-problems")
    items = task.items[:6]
    good = [sample_of(stats, item, task, item.reference) for item in items]
    broken = [sample_of(stats, item, task, f"Nn. #### {item.gold}", "b") for item in items]
    figures = summarise(broken)
    assert (figures["right"], figures["formed"], figures["both"]) == (1.0, 0.0, 0.0)
    assert figures["both_interval"] == wilson(0, 6)
    assert set(figures["kinds"]) == {"2-3", "4-5", "6-8"}
    assert figures["kinds"]["6-8"]["n"] == 2
    assert compare(good, broken)["difference"] == 1.0


def test_the_report_shows_all_three_or_says_that_only_the_answer_is_graded(stats, tmp_path):

    results = run_evaluation(*toy_job(tmp_path / "run", limit=2))
    assert ANSWER_ONLY in page(results, {})
    for run in results["runs"]:
        run["formed"], run["formed_interval"] = 0.5, (0.1, 0.9)
    text = page(results, {})
    assert ANSWER_ONLY not in text
    assert "50.0 %<br><small>10.0 to 90.0</small>" in text
    assert "None" not in text


def test_the_report_says_what_is_wrong_with_a_failing_sample(stats):
    task = load_task("word-problems")
    item = task.items[0]
    broken, wrong, silent = (
        fault(sample_of(stats, item, task, text)) for text in (f"Nn. #### {item.gold}", "So. #### 999", "So.")
    )
    assert broken.startswith(item.gold)
    assert wrong.startswith("999")
    assert wrong.endswith(silent.split()[-1])
    assert silent.endswith(item.gold)


def test_packaged_prompts_are_judged_and_others_are_not():
    item = load_task("lines").items[0]
    assert judge(item.prompt, item.reference) == (True, True)
    assert judge(item.prompt, "1 Tom 1 Tom") == (False, False)
    assert judge("Who are you?", "1 Tom") is None
