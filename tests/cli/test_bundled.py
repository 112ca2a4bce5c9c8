"""The verbs that use the bundled model: demo, bench, doctor."""

import json

import pytest

from starr.cli import bench, demo, doctor
from starr.errors import LoadError
from starr.model.numbers import Outcome
from starr.optional import Extra


def test_demo_compares_both_strategies_and_both_solve_the_problem(starr):
    """Right and well formed: it is the first thing that a newcomer sees."""
    result = starr("demo", "--quiet", "--json")
    assert result.code == 0
    body = json.loads(result.out)
    one, fast = body["runs"]
    assert (one["strategy"], fast["strategy"]) == ("confidence", "starr")
    assert one["stats"]["forwards"] == 128
    assert body["forwards_ratio"] == round(128 / fast["stats"]["forwards"], 1)
    assert body["seconds_ratio"] > 0
    assert [(run["right"], run["formed"], run["both"]) for run in body["runs"]] == [(True, True, True)] * 2


def test_demo_problem_has_three_steps():
    assert demo.choose(demo.PROBLEM).steps == 3


def test_demo_takes_another_problem(starr, monkeypatch):
    monkeypatch.setattr(demo, "STRATEGIES", ("threshold", "starr"))
    assert demo.choose(0).prompt in starr("demo", "--problem", 0).err
    result = starr("demo", "--problem", 1000)
    assert result.code == 2
    assert "0 to 999, not 1000" in result.line


def test_demo_shows_both_live_and_prints_the_answers(starr, monkeypatch):
    problem = demo.choose(demo.PROBLEM)
    monkeypatch.setattr(demo, "STRATEGIES", ("threshold", "starr"))
    result = starr("demo")
    assert problem.prompt in result.err
    assert all(f"{name}: ⚑ done" in result.err for name in ("threshold", "starr"))
    assert result.out.startswith("threshold: ")
    head, *rows, blank, ratio, more = result.out[result.out.index("strategy  ") :].splitlines()
    assert head.split()[:6] == ["strategy", "answer", "right", "formed", "both", "forwards"]
    assert max(map(len, (head, *rows))) <= 80
    assert [row.split()[0] for row in rows] == ["threshold", "starr"]
    assert blank == ""
    assert "fewer forwards" in ratio
    assert "starr eval" in more


def test_bench_prints_one_line_per_combination(starr):
    result = starr("bench", "--strategies", "threshold,starr", "--rows", "1,2", "--max-tokens", 8, "--json", "--quiet")
    rows = json.loads(result.out)
    assert [(row["strategy"], row["rows"]) for row in rows] == [
        ("threshold", 1), ("starr", 1), ("threshold", 2), ("starr", 2)
    ]  # fmt: skip
    assert all(row["seconds"] > 0 and row["overhead"] > 0 for row in rows)


def test_bench_refuses_a_batch_of_nothing(starr):
    result = starr("bench", "--rows", "1,0")
    assert result.code == 2
    assert "--rows" in result.line


def test_batch_sizes():
    assert bench.read_sizes("1, 8") == [1, 8]


@pytest.fixture
def quick(monkeypatch):
    """Half precision is not tried in a child process."""
    found = {"bfloat16": Outcome("killed by signal 4"), "float16": Outcome(even=True, gains={"256": 2.0})}
    for module in ("starr.model.numbers", "starr.model.device"):
        monkeypatch.setattr(f"{module}.find_outcome", found.__getitem__)


def test_doctor_reports_and_advises(starr, quick):
    result = starr("doctor")
    assert result.code == 0
    assert "ok   torch 2" in result.out
    assert "bundled model: loads and decodes" in result.out
    assert "note bfloat16 on cpu: killed by signal 4\n     → Keep float32" in result.out
    assert "ok   float16 on cpu: works, 2.0 x as fast as float32 at width 256" in result.out
    states = {finding["state"] for finding in json.loads(starr("doctor", "--json").out)}
    assert states <= {"ok", "note"}


def test_doctor_exits_1_where_decoding_cannot_work(starr, quick, monkeypatch):
    def broken():
        raise LoadError("The bundled model is gone.", hint="Install it.")

    monkeypatch.setattr("starr.model.load.load", broken)
    result = starr("doctor")
    assert result.code == 1
    assert "BAD  bundled model: The bundled model is gone.\n     → Install it." in result.out


def test_doctor_names_missing_extras(monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", [Extra("serve", ("no_such_module",), "the server")])
    (finding,) = doctor.extras()
    assert finding.what == "extra [serve] for the server: no_such_module missing"
    assert "starr-dlm[serve]" in finding.advice
