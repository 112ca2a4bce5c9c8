"""The evaluation loop: same results alone, sharded, resumed and after a kill -9."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from starr.errors import InputError, LoadError
from starr.evals.run.evaluate import merge_runs, run_evaluation
from starr.evals.run.progress import announce, seconds_left, spell
from starr.evals.run.runner import Workload, evaluate
from starr.evals.run.runs import Run, choose, make_runs, parse_shard, requests_for, settings_for
from starr.evals.run.store import Store, read_samples
from starr.evals.stats import wilson
from starr.evals.tasks import Item, Task
from tests.evals.toy import toy_job, toy_task
from tests.tiny import Letters, tiny_model

ROOT = Path(__file__).resolve().parents[3]


def timeless(results):
    """Results without what a clock gave."""
    body = json.loads(json.dumps(results))
    body.pop("date")
    for run in body["runs"]:
        run.pop("time")
    return body


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return timeless(run_evaluation(*toy_job(tmp_path_factory.mktemp("whole") / "run")))


def test_results_say_what_the_samples_say(tmp_path, unbroken):
    results = run_evaluation(*toy_job(tmp_path / "run"))
    assert timeless(results) == unbroken
    assert [run["run"] for run in results["runs"]] == ["threshold:tau=0.5", "starr"]
    for run in results["runs"]:
        samples = [s for s in read_samples(tmp_path / "run" / "samples.jsonl") if s.run == run["run"]]
        assert run["n"] == len(samples) == 12
        assert run["both"] * 12 == pytest.approx(sum(s.both for s in samples))
        assert run["both_interval"] == wilson(sum(s.both for s in samples), 12)
        assert run["forwards"] == sum(s.forwards for s in samples) / 12
        assert run["tokens_per_forward"] <= run["tokens_per_forward_with_end"]
        assert run["time"]["latency_p50"] <= run["time"]["latency_p95"]
        assert set(run["scores"]) == {"even", "short"}
    (pair,) = results["pairs"]
    assert pair["n"] == 12
    assert pair["difference"] * 12 == pytest.approx(12 * (results["runs"][0]["both"] - results["runs"][1]["both"]))
    assert json.loads((tmp_path / "run" / "results.json").read_text())["machine"]["versions"]["torch"]


def test_killed_evaluation_resumes_to_the_same_results(tmp_path, unbroken):
    out = tmp_path / "run"
    child = subprocess.Popen([sys.executable, "-m", "tests.evals.toy", str(out)], cwd=ROOT)
    wait_for_lines(out / "samples.jsonl", 5)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    stored = len((out / "samples.jsonl").read_text().splitlines())
    assert 5 <= stored < 24
    with (out / "samples.jsonl").open("a") as file:
        file.write('{"run": "starr", "cut off')
    assert timeless(run_evaluation(*toy_job(out, resume=True))) == unbroken
    assert len(list(read_samples(out / "samples.jsonl"))) == 24


def wait_for_lines(path, count):
    for _ in range(1200):
        if path.exists() and path.read_text().count("\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError("the child wrote no samples")


def test_interrupt_keeps_samples_and_writes_results(tmp_path, unbroken, monkeypatch):
    out = tmp_path / "run"
    model, job = toy_job(out)
    add, count = Store.add, [0]

    def interrupted(self, sample):
        add(self, sample)
        count[0] += 1
        if count[0] == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_evaluation(model, job)
    monkeypatch.undo()
    assert sum(run["n"] for run in json.loads((out / "results.json").read_text())["runs"]) == 4
    assert (out / "report.html").exists()
    assert timeless(run_evaluation(*toy_job(out, resume=True))) == unbroken


def test_shards_join_to_the_whole(tmp_path, unbroken):
    for i in (1, 2, 3):
        run_evaluation(*toy_job(tmp_path / f"part{i}", shard=(i, 3)))
    merged = merge_runs([tmp_path / f"part{i}" for i in (3, 1, 2)], tmp_path / "whole")
    assert timeless(merged) == unbroken


def test_merge_refuses_other_settings_and_other_folders(tmp_path):
    run_evaluation(*toy_job(tmp_path / "a", limit=2))
    run_evaluation(*toy_job(tmp_path / "b", limit=2))
    path = tmp_path / "b" / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": 5}))
    with pytest.raises(InputError, match="seed"):
        merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    with pytest.raises(InputError, match="nowhere"):
        merge_runs([tmp_path / "nowhere"], tmp_path / "d")
    with pytest.raises(InputError):
        merge_runs([], tmp_path / "e")


def test_a_folder_with_samples_needs_resume_and_the_same_settings(tmp_path):
    run_evaluation(*toy_job(tmp_path / "run", limit=2))
    with pytest.raises(InputError, match="--resume"):
        run_evaluation(*toy_job(tmp_path / "run", limit=2))
    model, job = toy_job(tmp_path / "run", limit=2, resume=True)
    retrained = settings_for(tiny_model(length=64, seed=1), job.task, form="base")
    assert retrained.weights != job.settings.weights
    with pytest.raises(InputError, match="weights"):
        run_evaluation(model, replace(job, settings=retrained))
    with pytest.raises(InputError, match=r"float32.*bfloat16"):
        run_evaluation(model, replace(job, settings=replace(job.settings, dtype="bfloat16")))
    path = tmp_path / "run" / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_tokens": 99}))
    with pytest.raises(InputError, match="max_tokens 99"):
        run_evaluation(*toy_job(tmp_path / "run", limit=2, resume=True))


def test_a_broken_line_is_named(tmp_path):
    run_evaluation(*toy_job(tmp_path / "run", limit=2))
    path = tmp_path / "run" / "samples.jsonl"
    path.write_text("nonsense\n" + path.read_text())
    with pytest.raises(LoadError, match="line 1"):
        run_evaluation(*toy_job(tmp_path / "run", limit=2, resume=True))


def test_until_sure_stops_early_and_only_then(tmp_path, monkeypatch):
    from starr.evals.run import runner

    monkeypatch.setattr(runner, "CHUNK", 4)
    monkeypatch.setattr(runner, "LEAST_SURE", 4)
    sure_at_once = run_evaluation(*toy_job(tmp_path / "a", until_sure=200.0))
    assert [run["n"] for run in sure_at_once["runs"]] == [7, 7]  # a batch of 3, which is too few, and a chunk
    never = run_evaluation(*toy_job(tmp_path / "b", until_sure=0.001))
    assert [run["n"] for run in never["runs"]] == [12, 12]


def test_batch_size_does_not_change_samples(tmp_path, unbroken):
    model, job = toy_job(tmp_path / "run")
    alone = Workload(job.work.items, job.work.runs, 1)
    assert timeless(run_evaluation(model, replace(job, work=alone))) == unbroken


def test_runs_are_named_by_what_differs():
    assert Run("starr").name == "starr"
    assert Run("starr", "dual", 32, "ice-sp").name == "starr + dual + block 32 + ice-sp"
    forms = make_runs(["threshold:tau=0.9", "threshold", "starr"])
    assert [run.name for run in forms] == ["threshold", "starr"]


def test_items_are_chosen_by_limit_and_shard():
    task = toy_task(10)
    assert [i for i, _ in choose(task, 4)] == [0, 1, 2, 3]
    parts = [[i for i, _ in choose(task, 7, (k, 3))] for k in (1, 2, 3)]
    assert sorted(i for part in parts for i in part) == list(range(7))
    assert parts[0] == [0, 3, 6]
    with pytest.raises(InputError):
        choose(task, 0)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "/", "-1/2"])
def test_bad_shards_are_refused(text):
    with pytest.raises(InputError, match="i/n"):
        parse_shard(text)


def test_the_first_batches_tell_how_long_it_takes(tmp_path, capsys):
    model, job = toy_job(tmp_path / "run")
    store = Store(tmp_path / "none")
    assert re.findall(r"\d+", announce(job.work, store)) == ["24", "2"]
    assert seconds_left(job.work, store) is None
    first, second = (run.name for run in job.work.runs)
    done = run_evaluation(model, replace(job, quiet=True))
    finished = Store(job.out)
    finished.open({}, resume=True)
    sample = finished.of(first)[0]
    store.keep(replace(sample, elapsed=3.0))
    assert seconds_left(job.work, store) is None  # nothing is known of the second run
    store.keep(replace(sample, run=second, elapsed=1.0))
    assert seconds_left(job.work, store) == 11 * 3.0 + 11 * 1.0
    assert seconds_left(job.work, finished) == 0
    assert done["runs"]
    assert [spell(s) for s in (5, 89, 600, 7200)] == ["5 s", "89 s", "10 min", "2.0 h"]


def test_every_run_decodes_one_batch_before_any_goes_on(tmp_path):
    model, job = toy_job(tmp_path / "run")
    seen = []
    store = Store(job.out)
    store.open(job.settings.to_dict() | {"runs": []}, resume=False)
    work = replace(job.work, rows=3)
    evaluate(model, job.task, job.settings, work, store, lambda sample: seen.append(sample.run))
    assert [name for name, _ in groupby(seen)] == [run.name for run in work.runs] * 2
    assert seen[:6] == [work.runs[0].name] * 3 + [work.runs[1].name] * 3


def test_a_line_when_the_time_is_known_and_one_at_each_tenth(tmp_path, capsys):
    model, job = toy_job(tmp_path / "run")
    run_evaluation(model, replace(job, quiet=False))
    shown = [line for line in capsys.readouterr().err.splitlines() if "left;" in line]
    assert len(shown) in (10, 11)
    assert "about" in shown[0]
    assert shown[-1].startswith("24/24, about 0 s left;")


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(tmp_path, capsys, monkeypatch):
    model, job = toy_job(tmp_path / "run")
    monkeypatch.setattr("starr.evals.run.evaluate.evaluate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_evaluation(model, replace(job, quiet=False))
    said = capsys.readouterr().err
    assert str(job.out) not in said, "nothing is kept"
    assert "--resume" not in said
    assert (job.out / "results.json").exists()
    monkeypatch.undo()
    one = replace(job, work=replace(job.work, items=job.work.items[:1], runs=job.work.runs[:1]), quiet=False)
    monkeypatch.setattr(Store, "add", interrupted_after(Store.add))
    with pytest.raises(KeyboardInterrupt):
        run_evaluation(model, one)
    said = capsys.readouterr().err
    assert re.findall(r"\d+", said.splitlines()[0]) == ["1", "1"]
    assert str(job.out) in said.splitlines()[-1]
    assert "--resume" in said.splitlines()[-1]


def interrupted_after(add):
    def call(self, sample):
        add(self, sample)
        raise KeyboardInterrupt

    return call


def interrupt(*_):
    raise KeyboardInterrupt


def test_report_is_one_file_with_table_picture_and_failing_samples(tmp_path):
    results = run_evaluation(*toy_job(tmp_path / "run"))
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<svg" in page
    assert "http://" not in page
    assert "https://" not in page
    wrong = [s for s in read_samples(tmp_path / "run" / "samples.jsonl") if not s.both]
    assert page.count("<details") == len(wrong) > 0
    for number, run in enumerate(results["runs"]):
        assert f"href='#failing{number}'" in page
        assert f"id='failing{number}'" in page
        assert f"{100 * run['both']:.1f} %" in page


def test_report_escapes_what_models_write(tmp_path, monkeypatch):
    from starr.evals.run import runner

    kept = runner.graded

    def graded(*given):
        *others, generation, elapsed = given
        return kept(*others, replace(generation, text="<script>alert(1)</script>odd!"), elapsed)

    monkeypatch.setattr(runner, "graded", graded)
    run_evaluation(*toy_job(tmp_path / "run", limit=3))
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


class Chatty(Letters):
    """Letters with a chat template of two marks."""

    has_chat = True

    def chat(self, messages):
        return [0, *self.encode(messages[-1]["content"]), 0]


def test_chat_form_wraps_the_question_and_begins_the_answer():
    model = tiny_model(length=64)
    chatty = replace(model, tokenizer=Chatty())
    item = Item("a", "base prompt", "the question", "", "", prefix="so: ")
    task = Task("toy", [item], toy_task().grade, "even", 5)
    letters = Letters()
    chat = requests_for(chatty, [item], Run("threshold"), settings_for(chatty, task))[0]
    assert chat.tokens[: chat.start] == [0, *letters.encode("the question"), 0, *letters.encode("so: ")]
    assert chat.masked[chat.start :] == [True] * 5
    base = requests_for(model, [item], Run("threshold"), settings_for(model, task))[0]
    assert base.tokens[: base.start] == [model.spec.bos_id, *letters.encode("base prompt")]
    forced = settings_for(chatty, task, form="base", max_tokens=7)
    assert (forced.form, forced.max_tokens) == ("base", 7)
