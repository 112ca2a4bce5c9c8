"""``--ray`` with real Ray processes: the results of one process, and nothing lost or twice when processes die."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from starr.cli.main import main
from starr.cluster.fleet import Fleet, make_starter
from starr.cluster.jobs import start_remote
from starr.cluster.start import Size
from starr.cluster.worker import ModelSource
from starr.errors import WorkError
from starr.evals.run.evaluate import Evaluation, carry_out
from starr.evals.run.runner import Workload
from starr.evals.run.runs import choose, make_runs
from starr.evals.run.store import read_samples
from starr.evals.tasks import Grade, load_task
from tests.cluster.shy import Shy

CLOCKS = ("time", "seconds", "elapsed", "date", "machine")


def without_clocks(body):
    """A result without what a clock or the machine gave."""
    if isinstance(body, dict):
        return {key: without_clocks(value) for key, value in body.items() if key not in CLOCKS}
    return [without_clocks(value) for value in body] if isinstance(body, list) else body


def results(folder):
    return without_clocks(json.loads((Path(folder) / "results.json").read_text()))


def evaluate(out, tiny, rows, *more, quiet=True):
    common = ("--model", tiny, "--data", rows, "--max-tokens", "8", "--batch-size", "2", "--json", "--dtype", "float32")
    more = (*more, "--quiet") if quiet else more
    runs = ("--strategy", "threshold:tau=0.5", "--strategy", "random")
    return main(["eval", "word-problems", *common, *runs, "-o", str(out), *more])


@pytest.fixture(scope="module")
def one_process(tmp_path_factory, tiny, rows):
    out = tmp_path_factory.mktemp("one") / "run"
    assert evaluate(out, tiny, rows) == 0
    return results(out)


def test_two_workers_give_the_results_of_one_process_and_of_two_shards(own_ray, one_process, tmp_path, tiny, rows):
    assert evaluate(tmp_path / "two", tiny, rows, "--ray", "--workers", "2") == 0
    assert results(tmp_path / "two") == one_process
    for shard in ("1/2", "2/2"):
        assert evaluate(tmp_path / shard[0], tiny, rows, "--shard", shard) == 0
    assert main(["eval", "merge", str(tmp_path / "1"), str(tmp_path / "2"), "-o", str(tmp_path / "m"), "--quiet"]) == 0
    assert results(tmp_path / "m") == one_process


def process_of(ray, decoder):
    """The process of the first worker."""
    return ray.get(decoder.fleet.members[0].actor.__ray_call__.remote(lambda self: os.getpid()))


def plan_of(rows):
    task = load_task("word-problems", Path(rows))
    return task, Workload(choose(task, None), make_runs(["threshold:tau=0.5", "random"]), 2)


def test_a_worker_that_is_killed_loses_nothing(own_ray, one_process, tmp_path, tiny, rows):
    """SIGKILL after the first samples; Ray starts it again, and every sample is there once."""
    task, work = plan_of(rows)
    with start_remote(Size(workers=2), ModelSource(tiny), task, 2, {"max_tokens": 8}, quiet=True) as decoder:
        victim = process_of(own_ray, decoder)
        job = Evaluation(task, decoder.settings(), work, tmp_path / "killed", quiet=True)
        killed = after(3, decoder, lambda: os.kill(victim, signal.SIGKILL))
        carry_out(job, decoder)
        assert killed == [True]
        decoder.fleet.members[1:] = []
        decoder.settings()  # waits for the first worker
        assert process_of(own_ray, decoder) != victim
    once(tmp_path / "killed", 24)
    assert results(tmp_path / "killed") == one_process


def after(count, decoder, act):
    """Act once, when the fleet has given ``count`` results."""
    acted, work = [], decoder.fleet.work

    def watched(units, most):
        for number, result in enumerate(work(units, most), start=1):
            if number == count and not acted:
                act()
                acted.append(True)
            yield result

    decoder.fleet.work = watched
    return acted


def once(folder, count):
    """Every sample stands in the file exactly once."""
    found = Counter((sample.run, sample.index) for sample in read_samples(folder / "samples.jsonl"))
    assert len(found) == count
    assert set(found.values()) == {1}


def test_the_driver_is_killed_and_goes_on(own_ray, tmp_path, tiny, rows, ray_folder):
    """SIGKILL of the whole command; its Ray dies with it, and --resume decodes only what is missing."""
    long = ("--max-tokens", "48")
    assert evaluate(tmp_path / "one", tiny, rows, *long) == 0
    out, folder = tmp_path / "driver", Path(ray_folder) / "killed"
    command = [sys.executable, "-m", "starr.cli.main", "eval", "word-problems", "--model", tiny, "--data", rows]
    command += ["--max-tokens", "48", "--batch-size", "2", "--strategy", "threshold:tau=0.5", "--strategy", "random"]
    command += ["-o", str(out), "--quiet", "--ray", "--workers", "2"]
    child = subprocess.Popen(command, env=os.environ | {"RAY_TMPDIR": str(folder)}, stdout=subprocess.DEVNULL)
    samples = out / "samples.jsonl"
    until(lambda: samples.exists() and samples.stat().st_size, child)
    child.kill()
    child.wait()
    kept = len(list(read_samples(samples)))
    assert 0 < kept < 24
    until(lambda: not commands_with(str(folder)))
    assert evaluate(out, tiny, rows, *long, "--ray", "--workers", "1", "--resume") == 0
    once(out, 24)
    assert results(out) == results(tmp_path / "one")


class Terminal(io.StringIO):
    """A standard error that people look at."""

    def isatty(self):
        return True


@pytest.fixture
def heeds_ctrl_c():
    """A suite that runs in the background of a shell ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("own_ray", "heeds_ctrl_c")
def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(one_process, tmp_path, tiny, rows, monkeypatch):
    """SIGINT after the third sample, with a bar that tells what the workers do."""
    screen, work = Terminal(), Fleet.work
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", screen)
        patch.setenv("COLUMNS", "200")  # one line for the bar
        patch.setattr(Fleet, "work", lambda *given: interrupted(work(*given), 3))
        assert evaluate(tmp_path / "stop", tiny, rows, "--ray", "--workers", "2", quiet=False) == 130
    told = screen.getvalue()
    assert re.search(r"2 workers: \d (decoding|idle|starting)", told)
    kept = len(list(read_samples(tmp_path / "stop" / "samples.jsonl")))
    assert 2 <= kept <= 3
    assert f"Interrupted: {kept} samples kept in" in told
    assert "Traceback" not in told
    assert evaluate(tmp_path / "stop", tiny, rows, "--resume") == 0  # the folder is the same without Ray
    once(tmp_path / "stop", 24)
    assert results(tmp_path / "stop") == one_process


def interrupted(found, count):
    """Ctrl-C before the result of that number is taken."""
    for number, result in enumerate(found, start=1):
        if number == count:
            signal.raise_signal(signal.SIGINT)
        yield result


def test_until_sure_stops_where_one_process_stops(own_ray, tmp_path, tiny, rows, monkeypatch):
    monkeypatch.setattr("starr.evals.run.runner.LEAST_SURE", 4)
    monkeypatch.setattr("starr.evals.run.runner.CHUNK", 4)
    sure = ("--until-sure", "200")
    assert evaluate(tmp_path / "one", tiny, rows, *sure) == 0
    assert evaluate(tmp_path / "two", tiny, rows, *sure, "--ray", "--workers", "1") == 0
    assert results(tmp_path / "two") == results(tmp_path / "one")
    once(tmp_path / "two", 2 * 6)  # a batch of two, then four more


def until(test, child=None, seconds=480.0):
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it did not happen in time"
        assert child is None or child.poll() is None, "the process ended"
        time.sleep(0.01)


def commands_with(text):
    """Processes whose command line holds a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if text.encode() in path.read_bytes() else []
        except OSError:
            continue
    return found


def test_a_poison_sample_fails_alone_and_is_named(own_ray, tmp_path, tiny, rows, capsys):
    """One item kills its worker whenever it is decoded, another one raises; all others are decoded."""
    task, work = plan_of(rows)
    items = list(task.items)
    items[4] = replace(items[4], facts={"deadly": True})
    items[7] = replace(items[7], facts={})
    task = replace(task, items=items, grade=deadly)
    work = replace(work, items=choose(task, None), runs=work.runs[:1])
    with start_remote(Size(workers=1), ModelSource(tiny), task, 2, {"max_tokens": 4}, quiet=True) as decoder:
        job = Evaluation(task, decoder.settings(), work, tmp_path / "poison", quiet=True)
        with pytest.raises(WorkError, match="2 samples failed"):
            carry_out(job, decoder)
    once(tmp_path / "poison", 10)
    told = capsys.readouterr().err
    assert f"failed: {items[4].id} (threshold:tau=0.5): It crashed its worker" in told
    assert f"failed: {items[7].id} (threshold:tau=0.5): KeyError: 'problem'" in told


def deadly(item, text):
    if item.facts.get("deadly"):
        os.kill(os.getpid(), signal.SIGKILL)
    return Grade(text, {"strict": bool(item.facts["problem"])})


def shy_fleet(ray, folder, failures, said):
    size = Size(workers=2)
    return Fleet(ray, size, make_starter(ray, size, Shy, ModelSource(), (str(folder), failures)), said.append)


def test_a_worker_that_fails_for_good_gives_one_line_and_the_others_go_on(own_ray, tmp_path):
    said = []
    fleet = shy_fleet(own_ray, tmp_path, 1, said)
    found = dict(fleet.work([(None, place) for place in range(30)], 4))
    until(lambda: list(fleet.wait()) or said)
    fleet.end()
    assert found == {(None, place): -place for place in range(30)}
    assert [line[8:] for line in said] == [" is lost: There is no model."]


def test_when_every_worker_has_failed_the_last_reason_is_told(own_ray, tmp_path):
    said = []
    fleet = shy_fleet(own_ray, tmp_path, 2, said)
    with pytest.raises(
        WorkError, match=r"^Every worker has failed. The last one: There is no model. --resume continues."
    ):
        list(fleet.work([(None, 0)], 4))
    assert sorted(line[:8] for line in said) == ["worker 1", "worker 2"]
    fleet.end()


def test_prompts_of_a_file_come_in_order(own_ray, tmp_path, tiny, capsys):
    """The results of one process, also when the file was half done; a prompt that is too long fails alone."""
    lines = [{"prompt": "What is it? " * (1 + i % 3), "id": i} for i in range(10)]
    lines[6]["prompt"] = "too long " * 100
    source, ours, theirs = tmp_path / "in.jsonl", tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    options = ["--model", tiny, "--max-tokens", "6", "--batch-size", "2", "--quiet"]
    good = [line for line in lines if line["id"] != 6]
    source.write_text("".join(json.dumps(line) + "\n" for line in good))
    assert main(["run", "--input", str(source), "-o", str(theirs), *options]) == 0
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ours.write_text("".join(theirs.read_text().splitlines(keepends=True)[:3]) + '{"cut')
    shutil.copy(f"{theirs}.settings.json", f"{ours}.settings.json")
    assert main(["run", "--input", str(source), "-o", str(ours), *options, "--resume", "--ray", "--workers", "1"]) == 1
    assert "1 prompt failed: line 7: Prompt and canvas need" in capsys.readouterr().err
    found = [json.loads(line) for line in ours.read_text().splitlines()]
    assert [row["id"] for row in found] == list(range(10))
    assert "positions" in found[6]["error"]
    expected = [json.loads(line) for line in theirs.read_text().splitlines()]
    assert [row["tokens"] for row in found if "error" not in row] == [row["tokens"] for row in expected]


def test_reproduce_takes_its_samples_from_workers(own_ray, tmp_path, tiny, rows):
    options = ["--model", tiny, "--data", rows, "--limit", "4", "--max-tokens", "6", "--quiet", "--json"]
    assert main(["reproduce", "table1", *options, "-o", str(tmp_path / "ours"), "--ray", "--workers", "1"]) == 0
    assert main(["reproduce", "table1", *options, "-o", str(tmp_path / "theirs")]) == 0
    ours, theirs = (samples_below(tmp_path / name) for name in ("ours", "theirs"))
    assert ours == theirs
    assert ours


def samples_below(folder):
    (path,) = (folder / "samples").rglob("samples.jsonl")
    return {(s.run, s.index): (s.text, s.forwards, s.both) for s in read_samples(path)}
