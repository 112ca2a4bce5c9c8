"""The plan of all results: enough items, nothing decoded twice, an estimate, pages from stored samples."""

import json
from dataclasses import replace

import pytest

from benchmarks import results
from benchmarks.estimate import forwards_of, seconds_of, seconds_of_all
from benchmarks.plan import FIRST, ROWS, TASKS, WHOLE, Step, chosen
from benchmarks.pool import missing_parts
from starr.evals.run.bench import Bench
from starr.evals.run.runner import Workload
from starr.evals.run.runs import Run
from starr.research.limit import LIMIT, oracle_samples
from starr.research.reproduce import RESULTS, RUNS
from tests.evals.toy import toy_bench

MODELS = ("bundled", "bundled-dream")


def last_steps(models=MODELS):
    """Every page as it stands at the end of the plan."""
    return {(step.page, step.model, step.task): step for step in chosen(models, TASKS, None, None)}


def test_the_plan_ends_with_enough_items_on_every_page():
    found = last_steps()
    for model in MODELS:
        for task in TASKS:
            step = found["table1", model, task]
            assert step.limit == WHOLE == 1000
            assert set(step.fewer) <= {LIMIT}
    for page in ("front", "parallel", "limit"):
        assert all(found[page, "bundled", task].limit >= FIRST == 300 for task in TASKS), page
    assert {page for page, _, _ in found} == set(RESULTS)
    files = {step.stem for step in found.values()}
    assert {"front", "front-lines", "parallel-grids", "table1", "table3"} <= files
    assert {"calibrated", "calibrated-lines", "calibrated-bundled-dream", "calibrated-lines-bundled-dream"} <= files


def test_fewer_items_and_some_pages_can_be_asked_for():
    steps = chosen(["bundled"], ["lines"], ["table1", "front"], 7)
    assert {step.page for step in steps} == {"table1", "front"}
    assert all(step.limit == 7 and step.task == "lines" for step in steps)
    assert len(set(map(str, steps))) == len(steps)
    assert set(ROWS) == set(TASKS)


def test_forwards_are_guessed_from_the_text_form():
    assert forwards_of(Run("confidence"), 128) == 128
    assert forwards_of(Run("margin:steps=16"), 128) == 16
    assert forwards_of(Run("remdm_llada"), 128) == 128 + 64
    assert forwards_of(Run("saber:least=4"), 128) == 32
    assert 3 <= forwards_of(Run("starr"), 128) < 20


def test_the_estimate_counts_what_steps_share_once_and_what_is_there_never(tmp_path):
    bench = toy_bench(tmp_path)
    step, runs = Step("table1", "bundled", "toy", 6), [Run("confidence"), Run("starr")]
    once = seconds_of(runs, bench)
    assert seconds_of_all([(step, bench, runs), (step, bench, runs)]) == [once, 0.0]
    bench.measure(runs)
    assert seconds_of(runs, bench) == 0.0


def test_parts_hold_what_is_missing_some_items_of_every_run_first(tmp_path):
    bench = toy_bench(tmp_path)
    runs = [Run("threshold"), Run("starr")]
    bench.measure_at(runs[:1], [0, 1])
    work = Workload(bench.items, runs, rows=1)
    parts = [(run.name, places) for run, places in missing_parts(work, bench.store)]
    assert parts == [("threshold", [2]), ("starr", [0, 1, 2]), ("threshold", [3, 4, 5]), ("starr", [3, 4, 5])]


def test_a_costly_run_may_have_fewer_items(tmp_path):
    bench = replace(toy_bench(tmp_path), fewer={"confidence": 2, LIMIT: 3})
    slow, quick = bench.measure([Run("confidence"), Run("threshold")])
    assert (slow.figures["n"], quick.figures["n"]) == (2, 6)
    assert len(oracle_samples(bench)) == 3
    assert not bench.store.has("confidence", 2)


@pytest.mark.parametrize("name", list(RUNS))
def test_what_a_page_says_it_decodes_is_all_it_decodes(name, tmp_path):
    bench = toy_bench(tmp_path, count=1, max_tokens=48 if name == "table3" else 10)
    runs = RUNS[name](bench)
    bench.measure(runs)
    oracle_samples(bench)
    before = set(bench.store.samples)
    RESULTS[name](bench)
    assert set(bench.store.samples) == before


def test_pages_are_made_by_workers_and_again_from_the_samples_alone(tmp_path, capsys, monkeypatch):
    words = [
        "--models",
        "bundled",
        "--tasks",
        "lines",
        "--only",
        "table1",
        "parallel",
        "--limit",
        "2",
        "--workers",
        "1",
    ]
    folders = ["--samples", str(tmp_path / "samples"), "--out", str(tmp_path / "out")]
    results.main([*words, *folders])
    first = json.loads((tmp_path / "out" / "table1.json").read_text())
    assert [(row["model"], row["task"], row["n"]) for row in first["rows"]] == [("bundled", "lines", 2)] * 5
    assert first["rows"][-1]["run"] == "calibrated", "a rule ships for the bundled model"
    assert {row["kind"] for row in first["more"]["Both (%) by kind of item"]} == {"copy", "reverse"}
    assert (tmp_path / "out" / "parallel-lines.png").exists()
    assert "parallel-lines.md" in (tmp_path / "out" / "README.md").read_text()
    assert "## What four tokens per step break" in (tmp_path / "out" / "about.md").read_text()
    assert "minutes of a core" in capsys.readouterr().out
    monkeypatch.setattr(Bench, "local", property(lambda self: pytest.fail("nothing is left to decode")))
    monkeypatch.setattr(results, "fill", lambda step, benches, workers: None)
    results.main([*words, *folders])
    assert json.loads((tmp_path / "out" / "table1.json").read_text())["rows"] == first["rows"]
