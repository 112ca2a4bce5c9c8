"""The verbs that tell: strategies, models, trace, doctor."""

import json

import pytest

import starr as package


def test_every_strategy_and_cache_is_listed_with_its_options(starr):
    result = starr("strategies")
    assert (result.code, result.err) == (0, "")
    for entry in (*package.strategies(), *package.caches()):
        assert f"  {entry.name}  ({entry.paper})" in result.out
        assert all(f"{option.name}=" in result.out and option.help in result.out for option in entry.options)
    assert starr("strategies", "list").out == result.out
    body = json.loads(starr("strategies", "--json").out)
    assert [entry["name"] for entry in body["strategies"]] == [entry.name for entry in package.strategies()]


def test_one_strategy_with_its_presets(starr):
    text = starr("strategies", "show", "starr").out
    assert "temporal_window=3" in text
    assert "preset=math500" in text
    assert "revokes (remasks): yes" in text
    assert json.loads(starr("strategies", "show", "threshold", "--json").out)["revokes"] == "no"
    assert "Did you mean 'starr'?" in starr("strategies", "show", "star").line


def test_models_are_listed(starr):
    listed = starr("models").out
    assert "GSAI-ML/LLaDA-8B-Instruct" in listed
    assert max(map(len, listed.splitlines())) <= 120
    names = [row["name"] for row in json.loads(starr("models", "list", "--json").out)]
    assert names[0] == "bundled"


def test_a_checkpoint_is_shown_without_its_weights(starr, tiny, monkeypatch):
    monkeypatch.setattr("starr.model.load.load_weights", None)
    facts = json.loads(starr("models", "show", tiny, "--json").out)
    assert (facts["family"], facts["context"], facts["vocabulary"]) == ("llada", 256, 272)
    assert facts["parameters"] == f"{sum(p.numel() for p in weights()):,}"
    shown = starr("models", "show", tiny).out
    assert "256" in shown
    assert {"shifted        no", "chat template  yes"} <= set(shown.splitlines())
    assert facts["shifted"] is False


def weights():
    from tests.model.tiny import llada_tensors

    return llada_tensors().values()


def test_a_model_that_is_not_here_is_not_fetched(starr, monkeypatch, tmp_path):
    result = starr("models", "show", "nobody/no-such-model")
    assert result.code == 2
    assert "nobody/no-such-model" in result.line


@pytest.fixture
def trace(run, tmp_path):
    file = tmp_path / "trace.json"
    run("run", "hello", "--trace", file, "--quiet")
    return file


def test_trace_summary(starr, trace):
    row = json.loads(starr("trace", "show", trace, "--json").out)[0]
    assert (row["strategy"], row["length"], row["commits"] - row["revocations"]) == ("starr", 12, 12)
    assert "starr" in starr("trace", "show", trace, trace).out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cut off or not JSON"),
        ("[" * 10**5, "cut off or not JSON"),
        ("[1]", "not a trace"),
        ('{"version": 9, "steps": []}', "9"),
    ],
)
def test_what_is_no_trace_is_refused(starr, tmp_path, content, words):
    file = tmp_path / "trace.json"
    file.write_text(content)
    result = starr("trace", "show", file)
    assert result.code == 2
    assert words in result.line


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--kind", "mpa", "-o", "x.png"], "mean 'map'?"), (["-o", "x.gif"], ".png or .svg")]
)
def test_plot_says_what_it_takes(starr, trace, arguments, words):
    result = starr("trace", "plot", trace, *arguments)
    assert result.code == 2
    assert words in result.line


def test_the_steps_agree_on_an_answer(starr, trace, tmp_path):
    body = json.loads(trace.read_text())
    body["pieces"] = {token: "7" if token == str(body["tokens"][0]) else " " for token in body["pieces"]}
    trace.write_text(json.dumps(body))
    found = json.loads(starr("trace", "vote", trace, "--json").out)
    assert set(found["answer"]) == {"7"}
    assert len(found["answers"]) == len(body["steps"])
    assert "the steps agree on 7" in starr("trace", "vote", trace, "--weights", "fixed").out
    assert "Did you mean 'linear'?" in starr("trace", "vote", trace, "--weights", "liner").line


@pytest.mark.parametrize("kind", ["token", "map", "curves"])
def test_plots_are_drawn(starr, trace, tmp_path, kind):
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        out = tmp_path / f"plot{suffix}"
        assert starr("trace", "plot", trace, "--kind", kind, "-o", out).code == 0
        assert out.read_bytes().startswith(magic)


def test_a_page_of_several_traces(starr, trace, tmp_path):
    page = tmp_path / "page.html"
    assert starr("trace", "show", trace, trace, "-o", page).code == 0
    assert page.read_text().startswith("<!doctype html>")
    assert "1 to 4" in starr("trace", "show", *[trace] * 5, "-o", page).line
