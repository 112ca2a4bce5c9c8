"""What somebody in a notebook or an editor meets: short words, pictures, types, and one clear error."""

import asyncio
import inspect
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import starr
from starr.errors import InputError
from tests.model.tiny import write_llada

NAMES = {"generate", "Generation", "Model", "Options", "Trace", "Event"}
ASK = {"role": "user", "content": "x"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return starr.load(write_llada(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module")
def traced(model):
    return starr.generate(model, "some prompt", max_tokens=16, trace=True)


def test_reprs_are_short_and_say_what_matters(traced, model):
    assert repr(model).startswith("<Model tiny")
    assert repr(model).endswith(" parameters, float32 on cpu>")
    assert len(repr(model)) < 200
    assert len(repr(starr.load())) < 200
    long = replace(traced.trace, text="word " * 100)
    assert repr(long).endswith("word…'>")
    assert len(repr(traced)) < 400
    assert len(repr(traced.trace)) < 200
    assert "forwards" in repr(traced)
    assert "16 positions" in repr(traced.trace)
    assert all(len(repr(step)) < 100 for step in traced.trace.steps)
    step = traced.trace.steps[0]
    assert f"{step.action.count(1)} commit" in repr(step)
    one = starr.generate(model, "some prompt", max_tokens=1, trace=True)
    assert "1 forward," in repr(one)
    assert "1 step, 1 position," in repr(one.trace)


def test_the_reference_shows_every_name_of_the_door():
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf8")
    shown = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: starr.")}
    errors = {name for name in starr.__all__ if name.endswith("Error")}  # the page shows their whole module
    assert len(errors) == 4
    assert not set(starr.__all__) - shown - errors - {"Carry"}  # the name of a type has no docstring


def test_html_is_the_viewer_in_a_frame_of_its_own(traced, model):
    for shown in (traced._repr_html_(), traced.trace._repr_html_()):
        assert shown.startswith("<iframe")
        assert 'sandbox="allow-scripts allow-downloads"' in shown
        assert "Life of a token" in shown
    plain = starr.generate(model, "some prompt", max_tokens=8)._repr_html_()
    assert "<iframe" not in plain
    assert "<pre>" in plain


def test_a_trace_is_loaded_as_it_was_saved(traced, tmp_path):
    traced.trace.save(tmp_path / "trace.json")
    assert starr.Trace.load(tmp_path / "trace.json").to_dict() == traced.trace.to_dict()


def test_columns_as_arrays(traced):
    arrays = traced.trace.to_numpy()
    steps = traced.trace.steps
    assert all(column.shape == (len(steps), 16) for column in arrays.values())
    start, end = steps[0].window
    assert np.allclose(arrays["confidence"][0, start:end], steps[0].confidence)
    assert arrays["action"][0, start:end].tolist() == list(steps[0].action)


def test_many_results_make_a_table(model):
    results = starr.generate(model, ["one", "two"], max_tokens=8)
    assert isinstance(results, list)
    table = results.to_pandas()
    assert table["text"].tolist() == [each.text for each in results]
    assert {"forwards", "tokens_per_forward", "strategy"} <= set(table.columns)


def test_the_door_lists_its_names_before_torch_is_there():
    code = f"import starr, sys; assert {NAMES!r} <= set(dir(starr)); print('torch' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "False\n"
    assert starr.__all__ == sorted(starr._HOMES)
    assert all(hasattr(starr, name) for name in starr.__all__)
    assert not {"sys", "os", "Any", "_HOMES"} & set(dir(starr))


@pytest.mark.parametrize("name", ["generate", "stream", "infill", "agenerate", "astream"])
def test_an_editor_lists_every_keyword(name):
    keywords = inspect.signature(getattr(starr, name)).parameters
    assert {"strategy", "cache", "max_tokens", "block_length", "temperature", "stop", "stop_rule", "seed"} <= set(
        keywords
    )


@pytest.mark.parametrize(
    "prompt",
    [
        {"role": "user", "content": "x"},
        5,
        2.5,
        None,
        ["text", 5],
        [{"role": "user", "content": "x"}, "text"],
        b"x",
        [True],
    ],
)
def test_what_is_no_prompt_is_one_clear_error(model, prompt):
    with pytest.raises(InputError, match="prompt") as caught:
        starr.generate(model, prompt, max_tokens=4)
    assert caught.value.param == "prompt"
    with pytest.raises(InputError):
        starr.stream(model, prompt, max_tokens=4)


@pytest.mark.parametrize("name", ["strategy", "cache", "ice"])
@pytest.mark.parametrize("wrong", [5, ["starr"], starr.Strategy])
def test_what_is_no_member_is_one_clear_error(model, name, wrong):
    with pytest.raises(InputError, match=name):
        starr.generate(model, "some prompt", max_tokens=4, **{name: wrong})


def test_a_class_in_place_of_an_instance_gets_its_brackets(model):
    with pytest.raises(InputError, match=r"Write Threshold\(\)\.$"):
        starr.generate(model, "some prompt", max_tokens=4, strategy=type(starr.strategy("threshold")))


def test_lists_of_what_there_is_are_short():
    shown = repr(next(entry for entry in starr.strategies() if entry.name == "threshold"))
    assert shown.startswith("<threshold:tau=0.9,")
    assert "Fast-dLLM" in shown
    assert all(len(repr(entry)) < 400 for entry in starr.strategies())


def test_no_prompts_give_no_results(model):
    assert starr.generate(model, []) == []


def test_events_carry_what_is_new(model, traced):
    events = list(starr.stream(model, "some prompt", max_tokens=16, block_length=4))
    assert "".join(event.delta for event in events) == events[-1].text
    assert events[-1].text == starr.generate(model, "some prompt", max_tokens=16, block_length=4).text


@pytest.mark.parametrize("trace", [False, True])
def test_stop_strings_cut_the_same_everywhere(model, trace):
    options = {"max_tokens": 24, "block_length": 4, "strategy": "confidence"}
    whole = starr.generate(model, "some prompt", **options).text
    stop = whole[5:7]
    wanted = whole[: whole.find(stop)]
    one = starr.generate(model, "some prompt", stop=stop, trace=trace, **options)
    batch = starr.generate(model, ["some prompt", "another"], stop=[stop, "never there"], trace=trace, **options)[0]
    events = list(starr.stream(model, "some prompt", stop=stop, trace=trace, **options))
    last = events[-1]
    assert all(later.text.startswith(event.text) for event, later in pairwise(events)), "nothing is taken back"
    assert "".join(event.delta for event in events) == wanted
    assert not trace or (last.generation.trace.text, len(last.generation.trace.steps)) == (whole, 24)
    assert (one.text, batch.text, last.text, last.generation.text) == (wanted,) * 4
    assert one.tokens == batch.tokens == last.generation.tokens
    assert (one.finish_reason, last.done) == ("stop", True)
    assert trace or one.stats.forwards < 24
    with pytest.raises(InputError, match="stop"):
        starr.generate(model, "x", stop=["a", ""])


def test_async_gives_the_same(model):
    async def both():
        events = [event async for event in starr.astream(model, "some prompt", max_tokens=12)]
        return await starr.agenerate(model, "some prompt", max_tokens=12), events[-1]

    result, last = asyncio.run(both())
    assert result.text == last.text == starr.generate(model, "some prompt", max_tokens=12).text


def test_progress_shows_a_bar(model, capsys):
    starr.generate(model, ["a", "b"], max_tokens=4, progress=True)
    assert "prompts" in capsys.readouterr().err
    starr.generate(model, ["a", "b"], max_tokens=4)
    assert capsys.readouterr().err == ""
