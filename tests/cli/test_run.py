"""``starr run``: text, JSON, files, traces, and every bad input in one line before anything is lost."""

import io
import json
import os
import sys
from types import SimpleNamespace

import pytest


def test_text_on_stdout_and_figures_on_stderr(run):
    result = run("run", "hello")
    assert result.code == 0
    assert result.out.strip()
    assert all(word in result.line for word in ("forwards", "12 tokens", "tokens per forward", "revocations"))
    assert run("run", "hello", "--quiet").err == ""


def test_json_has_the_names_of_the_contract(run):
    body = json.loads(run("run", "hello", "--json", "--seed", 3).out)
    assert set(body) == {"text", "tokens", "finish_reason", "model", "strategy", "cache", "seed", "stats"}
    assert (body["strategy"], body["cache"], body["seed"]) == ("starr", "none", 3)
    for name in ("forwards", "positions", "tokens", "seconds", "commits", "revocations", "tokens_per_forward"):
        assert name in body["stats"]


def test_same_tokens_from_python_and_the_command_line(run, tiny):
    import starr

    body = json.loads(run("run", "hello", "--json", "--temperature", 0.7, "--seed", 5, "--strategy", "threshold").out)
    model = starr.load(tiny)
    python = starr.generate(model, "hello", strategy="threshold", max_tokens=12, temperature=0.7, seed=5)
    assert body["tokens"] == python.tokens


def test_prompt_from_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"hello")))
    assert run("run", "-", "--json").out.split('"stats"')[0] == run("run", "hello", "--json").out.split('"stats"')[0]


def test_many_prompts_keep_order_and_other_fields(run, tmp_path):
    source, out = tmp_path / "prompts.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": 7, "prompt": "hello"}, "a much longer prompt", {"prompt": [{"role": "user", "content": "hi"}]}]
    source.write_text("\n\n".join(json.dumps(row) for row in rows))
    assert run("run", "--input", source, "-o", out, "--batch-size", 2).code == 0
    results = [json.loads(line) for line in out.read_text().splitlines()]
    assert results[0]["id"] == 7
    alone = [json.loads(run("run", prompt, "--json").out)["tokens"] for prompt in ("hello", rows[1], "hi")]
    assert [result["tokens"] for result in results] == alone
    printed = run("run", "--input", source, "--quiet").out.splitlines()
    assert [json.loads(line)["tokens"] for line in printed] == alone


def test_a_file_of_one_prompt_is_counted_as_one(run, tmp_path):
    source = tmp_path / "prompts.jsonl"
    source.write_text('"hello"')
    assert run("run", "--input", source).line == "1 of 1 prompt"


def test_trace_file_is_format_1(run, tmp_path):
    file = tmp_path / "trace.json"
    body = json.loads(run("run", "hello", "--json", "--trace", file).out)
    trace = json.loads(file.read_text())
    assert (trace["version"], trace["length"], trace["text"]) == (1, 12, body["text"])
    assert len(trace["steps"]) == body["stats"]["forwards"]
    assert {"window", "queried", "tokens", "masked", "confidence", "decided", "action"} <= trace["steps"][0].keys()


def test_live_draws_on_stderr_and_leaves_stdout_alone(run):
    result = run("run", "hello", "--live")
    assert result.out == run("run", "hello").out
    assert result.err.splitlines()[-1].startswith("starr: ⚑ done · 12 forwards")


def test_every_stop_string_counts(run):
    """Whichever of the two comes first in the text, in either order of the flags."""
    text = run("run", "hello").out.strip()
    early, late = text[3:5], text[6:8]
    assert text.index(early) < text.index(late)
    for flags in (("--stop", early, "--stop", late), ("--stop", late, "--stop", early)):
        assert run("run", "hello", *flags).out == text[: text.index(early)] + "\n"
    help_text = " ".join(run("run", "--help").out.split())
    assert "End the answer before this text; repeatable." in help_text
    assert "stop takes texts, none of them empty" in run("run", "hello", "--stop", "").line


def test_infill_keeps_the_text_around_its_holes(run):
    for extra in ((), ("--live",)):
        text = run("run", "one [MASK:3] two [MASK:2] three", "--infill", *extra).out
        assert text.startswith("one ")
        assert " two " in text
        assert text.endswith(" three\n")
        assert "MASK" not in text


def test_html_holds_the_run(run, tmp_path):
    page = tmp_path / "page.html"
    assert run("run", "hello", "--html", page).code == 0
    assert page.read_text().startswith("<!doctype html>")


def test_out_file_holds_what_would_be_printed(run, tmp_path):
    file = tmp_path / "answer.txt"
    assert run("run", "hello", "-o", file).out == ""
    assert file.read_text() == run("run", "hello").out
    assert os.listdir(tmp_path) == ["answer.txt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_loses_no_text(run):
    result = run("run", "hello", "-o", "/dev/full", "--quiet")
    assert (result.code, result.line) == (2, "starr: The disk is full. Free space and run again.")
    assert result.out == run("run", "hello").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([" "], ["prompt must not be empty"]),
        (["x" * 300], ["256"]),
        (["x", "--strategy", "starrr"], ["'starrr'", "Did you mean 'starr'?"]),
        (["x", "--strategy", "starr:scal=2"], ["'scal'", "Did you mean 'scale'?"]),
        (["x", "--strategy", "starr:scale=much"], ["scale", "float", "'much'"]),
        (["x", "--strategy", "starr:temporal_window=0"], ["temporal_window", "[1, ", "got 0"]),
        (["x", "--cache", "nune"], ["'nune'", "Did you mean 'none'?"]),
        (["x", "--block-length", "-1"], ["block_length", "-1"]),
        (["x", "--temperature", "-1"], ["temperature", "-1"]),
        (["x", "--temperature", "nan"], ["temperature", "nan"]),
        (["x", "--top-p", "0"], ["top_p", "0"]),
        (["x", "--seed", "-1"], ["seed", "-1"]),
        (["x", "--max-forwards", "0"], ["max_forwards", "0"]),
        (["x", "--enforce", "saef"], ["enforce", "safe, bounded, strict, literal", "'saef'"]),
        (["x", "--eos", "soon"], ["eos", "normal, never, last", "'soon'"]),
        (["x", "--device", "gpu"], ["'gpu'", "cpu"]),
        (["x", "--dtype", "float23"], ["'float23'", "Did you mean 'float32'?"]),
        (["x", "-o", "no/such/folder/out"], ["--out", "no/such/folder"]),
        (["x", "--trace", "."], ["--trace", "folder"]),
        (["x", "--input", "prompts.jsonl"], ["PROMPT", "--input"]),
        (["no holes", "--infill"], ["[MASK:n]"]),
        (["a [MASK:0] b", "--infill"], ["[MASK:0]"]),
    ],
)
def test_bad_input_is_one_line_and_code_2(run, arguments, words):
    result = run("run", *arguments)
    assert (result.code, result.out) == (2, "")
    assert all(word in result.line for word in words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no prompt"),
        (b'"fine"\n{"prompt": ', "line 2"),
        (b'{"text": "x"}', '"prompt"'),
        (b"\xff", "not UTF-8"),
        (b'"fine"\n"  "', "prompt must not be empty"),
    ],
)
def test_a_bad_prompt_file_stops_before_decoding(run, tmp_path, content, words):
    source, out = tmp_path / "prompts.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(content)
    result = run("run", "--input", source, "-o", out)
    assert result.code == 2
    assert words in result.line


def test_an_empty_prompt_from_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\n")))
    assert "empty" in run("run", "-").line


def test_a_folder_without_weights(starr, tmp_path):
    result = starr("run", "x", "--model", tmp_path)
    assert result.code == 2
    assert str(tmp_path) in result.line
