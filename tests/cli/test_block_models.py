"""A block-causal checkpoint in its released format from the command line and over HTTP, with its family's defaults."""

import json
import re

import pytest

from starr.cli.main import main
from tests.model import released


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(released.sdar().write(tmp_path_factory.mktemp("sdar") / "model", max_position_embeddings=1024))


def said(capsys, *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_show_says_how_its_authors_run_it(folder, capsys):
    shown = json.loads(said(capsys, "models", "show", folder, "--json"))
    assert shown["attention"] == "block-causal, 4 positions per block"
    assert (shown["strategy"], shown["cache"]) == ("threshold:origin=sdar,tau=0.85", "exact")


def test_show_says_how_many_positions_of_a_block_are_decided_together(tmp_path, capsys):
    one = released.fast_dllm().write(tmp_path / "model")
    shown = json.loads(said(capsys, "models", "show", str(one), "--json"))
    assert shown["attention"].endswith(" positions per block, decided 8 at a time")


def test_run_uses_the_familys_defaults_and_options_override_them(folder, capsys):
    made = json.loads(said(capsys, "run", "hello", "--model", folder, "--max-tokens", "10", "--json"))
    assert (made["strategy"], made["cache"]) == ("threshold:tau=0.85,origin=sdar", "exact")
    assert {"prefill", "denoise", "seal"} <= made["stats"].keys()
    other = ("--strategy", "confidence", "--cache", "none", "--block-length", "8")
    made = json.loads(said(capsys, "run", "hello", "--model", folder, "--max-tokens", "10", "--json", *other))
    assert (made["strategy"], made["cache"]) == ("confidence", "none")


def test_a_strategy_for_the_whole_canvas_is_one_line(folder, capsys):
    assert main(["run", "hello", "--model", folder, "--strategy", "wino"]) == 2
    assert "wino cannot be used with a block-causal model: its shadow block" in capsys.readouterr().err


def test_an_evaluation_runs_with_the_familys_defaults(folder, capsys, tmp_path):
    out = str(tmp_path / "out")
    flags = ("--model", folder, "--limit", "2", "--max-tokens", "8", "--out", out, "--json", "--quiet")
    results = json.loads(said(capsys, "eval", "word-problems", *flags))
    assert "threshold:tau=0.85,origin=sdar" in json.dumps(results)


def test_structured_answers_and_choices(folder, capsys, tmp_path):
    """The flags of constraints, and the verb for choices, on a model that decodes block after block."""
    run = ("run", "hello", "--model", folder, "--max-tokens", "40", "--json")
    assert re.fullmatch("[a-f]{3,5}", json.loads(said(capsys, *run, "--regex", "[a-f]{3,5}"))["text"])
    assert json.loads(said(capsys, *run, "--choices", "yes|no"))["text"] in ("yes", "no")
    (tmp_path / "schema.json").write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}')
    made = json.loads(said(capsys, *run, "--json-schema", f"@{tmp_path / 'schema.json'}"))["text"]
    assert json.loads(made).keys() <= {"n"}
    found = json.loads(said(capsys, "choose", "hello", "--model", folder, "--choices", "yes|no|perhaps", "--json"))
    assert sum(found["probabilities"].values()) == pytest.approx(1.0)
    assert main(["choose", "a [MASK] b", "--model", folder, "--choices", "x|y"]) == 2
    assert "does not see what follows a block" in capsys.readouterr().err
