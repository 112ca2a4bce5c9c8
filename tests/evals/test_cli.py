"""The evaluation verbs from the command line, with a tiny model in place of the bundled one."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import starr
from starr.cli.main import main
from starr.evals.grading import sandbox
from starr.evals.run.results import ANSWER_ONLY, WITH_END
from starr.plugins import register
from tests.evals.toy import toy_task
from tests.tiny import tiny_model


@pytest.fixture(autouse=True)
def tiny(monkeypatch, tmp_path):
    monkeypatch.setattr(starr, "load", lambda *_, **__: tiny_model(length=1024), raising=False)
    monkeypatch.chdir(tmp_path)


SMALL = ["--limit", "3", "--max-tokens", "6", "--quiet"]


def test_eval_prints_a_table_and_writes_the_folder(tmp_path, capsys):
    code = main(["eval", "word-problems", "--strategy", "threshold", "--strategy", "confidence", *SMALL])
    shown = capsys.readouterr().out
    assert code == 0
    assert "threshold − confidence" in shown
    assert {p.name for p in (tmp_path / "runs" / "word-problems").iterdir()} == {
        "settings.json", "samples.jsonl", "results.json", "report.html",
    }  # fmt: skip
    assert main(["eval", "word-problems", *SMALL]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["eval", "word-problems", "--strategy", "threshold", "--resume", "--json", *SMALL]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["n"] == 3


def test_the_column_with_end_is_explained(tmp_path, capsys):
    assert main(["eval", "word-problems", "--strategy", "threshold", *SMALL[:-1]]) == 0
    shown = capsys.readouterr()
    assert "with end" in shown.out
    assert shown.err.count(WITH_END) == 1
    assert f"{WITH_END}." in (tmp_path / "runs" / "word-problems" / "report.html").read_text()
    assert "*with end*" in (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text()


def test_a_task_without_a_rule_for_form_says_so(capsys, forget):
    register(toy_task())
    assert main(["eval", "toy", "--strategy", "threshold", *SMALL[:-1]]) == 0
    assert capsys.readouterr().err.count(ANSWER_ONLY) == 1
    assert main(["eval", "word-problems", "--strategy", "threshold", *SMALL[:-1]]) == 0
    assert ANSWER_ONLY not in capsys.readouterr().err


def test_no_line_is_wider_than_100_columns(capsys):
    names = [f"starr:temporal_window={window},spatial_window=2,blend=0.6/0.5/0.6" for window in (3, 5)]
    flags = [flag for name in names for flag in ("--strategy", name)]
    assert main(["eval", "word-problems", *flags, *SMALL]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_without_data_and_network_one_line_says_what_to_do(tmp_path):
    """A real process: the hub's client writes its own lines where nobody listens to it."""
    outside = {"HF_ENDPOINT": "https://nowhere.invalid", "HF_HOME": str(tmp_path), "STARR_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "starr.cli.main", "eval", "gsm8k", "--limit", "2"]
    child = subprocess.run(command, env=os.environ | outside, capture_output=True, text=True, check=False, timeout=120)
    assert child.returncode == 2
    assert len(child.stderr.splitlines()) == 1
    assert "gsm8k" in child.stderr
    assert "--data FILE" in child.stderr


def test_code_results_say_which_sandbox_held(capsys, tmp_path):
    assert main(["eval", "list-functions", "--strategy", "threshold", "--json", *SMALL]) == 0
    held = json.loads(capsys.readouterr().out)["sandbox"]
    assert held == str(sandbox.isolation())
    assert f"code sandbox: {held}" in (tmp_path / "runs" / "list-functions" / "report.html").read_text()


@pytest.mark.parametrize("number", [1, 12])
def test_model_code_never_runs_in_a_weak_or_broken_sandbox_unasked(capsys, monkeypatch, number):
    """Without namespaces (1) the flag is needed; a fault (12) is a failed evaluation, with the flag too."""
    answers = {"namespaces": {"failed": "unshare", "errno": number}, "limits": {"verdict": "passed", "walls": []}}
    monkeypatch.setattr(sandbox, "converse", lambda sources, tests, mode, *_, **__: answers[mode])
    sandbox.isolation.cache_clear()
    sandbox.check_isolation.cache_clear()
    flags = [] if number == 1 else ["--allow-weak-sandbox"]
    monkeypatch.setattr(sandbox.Permission, "weak", False)
    assert main(["eval", "list-functions", *flags, *SMALL]) == 1
    assert ("--allow-weak-sandbox" in capsys.readouterr().err) == (number == 1)
    sandbox.isolation.cache_clear()
    sandbox.check_isolation.cache_clear()


def test_shards_are_merged(capsys):
    for i in ("1", "2"):
        assert (
            main(["eval", "word-problems", "--strategy", "threshold", "--shard", f"{i}/2", "-o", f"part{i}", *SMALL])
            == 0
        )
    capsys.readouterr()
    assert main(["eval", "merge", "part1", "part2", "-o", "whole", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["n"] == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eval", "word-problem"], "Did you mean 'word-problems'"),
        (["eval", "word-problems", "--strategy", "strar"], "Did you mean 'starr'"),
        (["eval", "word-problems", "--shard", "3/2"], "i/n"),
        (["eval", "word-problems", "--limit", "0"], "--limit"),
        (["eval", "word-problems", "--batch-size", "0"], "--batch-size"),
        (["eval", "word-problems", "--form", "poem"], "chat or base"),
        (["eval", "word-problems", "--until-sure", "1.0"], "two"),
        (["eval", "word-problems", "more"], "one TASK"),
        (["eval", "merge", "nowhere", "-o", "x"], "not a run folder"),
        (["eval", "merge", "nowhere"], "--out"),
        (["eval", "word-problems", "--data", "nothing.jsonl"], "cannot be read"),
        (["reproduce", "table9"], "Unknown result"),
        (["analyze", "none.json"], "none.json"),
        (["tune", "word-problems"], "--grid option=a/b/c. Write --strategy threshold --grid tau=0.7/0.8/0.9."),
        (["tune", "word-problems", "--grid", "scale=1/2", "--loss", "-1"], "--loss"),
        (["tune", "word-problems", "--grid", "scale=1/2", "--calibration", "9000"], "--calibration"),
        (["tune", "word-problems", "--grid", "scale=1/2", "--calibration", "64"], "use --calibration"),
        (["tune", "word-problems", "--grid", "scale=1/2", "--loss", "0"], "--loss 0 can never be shown"),
        (["tune", "word-problems", "--grid", "sacle=1/2"], "Did you mean 'scale'"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(arguments, words, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip()
    assert words in error
    assert len(error.splitlines()) == 1


def test_reproduce_and_analyze(tmp_path, capsys):
    assert main(["reproduce", "table2", *SMALL, "-o", "results"]) == 0
    assert "responsive=false" in capsys.readouterr().out
    assert (tmp_path / "results" / "table2.png").exists()
    arguments = ["--strategy", "starr", "--max-tokens", "12", "--no-chat", "--quiet"]
    assert main(["run", "How many?", "--trace", "trace.json", *arguments]) == 0
    capsys.readouterr()
    assert main(["analyze", "trace.json", "-o", "figures", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "fluctuation" in shown
    assert "erratic" in shown
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {
        f"{name}.{kind}" for name in ("patterns", "zones") for kind in ("md", "json", "png")
    }


def test_tune_writes_a_preset_that_runs(tmp_path, capsys):
    arguments = ["tune", "word-problems", "--strategy", "threshold", "--grid", "tau=0.3/0.9", "--loss", "100"]
    assert main([*arguments, "--calibration", "4", "--max-tokens", "6", "--quiet"]) == 0
    shown = capsys.readouterr().out
    baseline, chosen, held_out = shown.splitlines()[-3:]
    assert "threshold" in chosen
    for line in (baseline, held_out):
        assert re.findall(r"([\d.]+) % (\w+)", line)[:3] == [("0.0", grade) for grade in ("right", "formed", "both")]
    assert "6.0 forwards" in baseline
    assert "n = 4" in held_out
    assert starr.strategy(f"@{tmp_path / 'tuned.json'}").name == "threshold"


def test_tune_chooses_the_baseline_when_nothing_keeps_the_bound(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("starr.fit.tune.Bound.kept", lambda *_: False)
    arguments = ["tune", "word-problems", "--strategy", "threshold", "--grid", "tau=0.3/0.9", "--loss", "100"]
    assert main([*arguments, "--calibration", "4", "--max-tokens", "6", "--quiet", "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["strategy"], found["in_grid"], found["held_out"]) == ("confidence", False, {})
    assert "threshold" in shown.err
    assert "100" in shown.err
    assert starr.strategy(f"@{tmp_path / 'tuned.json'}").name == "confidence"


def test_a_results_command_has_every_option_that_counts_and_no_other():
    from starr.cli.reproduce import ReproduceOptions, command
    from starr.options import Options

    assert command("table1", ReproduceOptions(result="all")) == "starr reproduce table1 --task word-problems"
    last = Options(eos="last")
    told = ReproduceOptions(
        result="all", limit=200, batch_size=4, decoding=last, block_length=16, dtype="bfloat16", json=True
    )
    words = "--limit 200 --batch-size 4 --eos last --block-length 16 --dtype bfloat16"
    found = command("table5", told).removeprefix("starr reproduce table5 --task word-problems ")
    assert {*found.removeprefix("--").split(" --")} == {*words.removeprefix("--").split(" --")}
