"""A verb that lacks an extra says so before its work begins."""

import sys
import tomllib
from pathlib import Path

import pytest

from starr.optional import EXTRAS

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
OWN = {"test", "docs"}  # for work on the project itself
ROWS = '{"prompt": "1 + 1", "problem": "1 + 1", "solution": "$2$", "answer": "2"}\n'


@pytest.mark.parametrize(
    ("module", "extra", "arguments"),
    [
        ("matplotlib", "eval", ["reproduce", "table1", "--limit", "1", "--out", "results"]),
        ("matplotlib", "eval", ["analyze", "trace.json", "--out", "results"]),
        ("matplotlib", "eval", ["trace", "plot", "trace.json", "--out", "plot.png"]),
        ("math_verify", "eval", ["eval", "math500", "--data", "rows.jsonl", "--out", "results"]),
        ("lm_eval", "lm-eval", ["eval", "math500", "--data", "rows.jsonl", "--out", "results"]),
        ("uvicorn", "serve", ["serve"]),
        ("lm_eval", "lm-eval", ["lm-eval", "--tasks", "gsm8k"]),
        ("ray", "ray", ["eval", "word-problems", "--ray", "--out", "results"]),
        ("ray", "ray", ["reproduce", "table1", "--ray", "--out", "results"]),
        ("ray", "ray", ["run", "--input", "rows.jsonl", "--ray", "--out", "results"]),
        ("ray", "ray-serve", ["serve", "--ray", "--replicas", "2"]),
        ("outlines_core", "grammar", ["run", "Hello", "--regex", "a+"]),
        ("outlines_core", "grammar", ["run", "--input", "rows.jsonl", "--json-schema", "object"]),
        ("outlines_core", "grammar", ["race", "Hello", "--choices", "yes|no"]),
    ],
)
def test_an_absent_extra_is_named_before_the_work(starr, monkeypatch, tmp_path, module, extra, arguments):
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(ROWS)
    assert starr("run", "Hello", "--max-tokens", 4, "--quiet", "--trace", "trace.json").code == 0
    for name in [name for name in sys.modules if name.split(".")[0] == module or name == "starr.viewer.plots"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("starr.model.load.load", lambda *_, **__: pytest.fail("the model was loaded"))
    result = starr(*arguments)
    assert result.code == 2
    assert module in result.line
    assert f"starr-dlm[{extra}]" in result.line
    assert not Path("results").exists()


def test_the_table_of_extras_is_that_of_the_package():
    assert {extra.name for extra in EXTRAS} == set(PROJECT["optional-dependencies"]) - OWN
    for extra in EXTRAS:
        listed = " ".join(PROJECT["optional-dependencies"][extra.name]).replace("-", "_")
        assert all(module in listed for module in extra.modules)
        assert extra.purpose
