"""Every option once: what the doors show is what ``starr.options`` says, also of an option that is new."""

import dataclasses
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import starr
from starr import api
from starr.errors import InputError
from starr.options import EVERYWHERE, BatchOptions, Options, by_name, check_option, options_at

SOURCE = Path(inspect.getfile(Options))

ADDED = """
import sys, types

text = open({source!r}, encoding="utf8").read()
line = "    seed: int = decoding("
assert text.count(line) == 1
new = '    wildness: float = decoding(0.5, "How wild.", low=0.0, high=2.0)\\n'
import starr
module = types.ModuleType("starr.options")
sys.modules["starr.options"] = starr.options = module
exec(compile(text.replace(line, new + line), {source!r}, "exec"), module.__dict__)
"""


def with_new_option(script):
    """Run a script in a process where one line was added to ``options.py``; what it prints."""
    code = ADDED.format(source=str(SOURCE)) + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_option_is_a_keyword_with_its_bounds():
    said = with_new_option("""
        import inspect
        from starr.errors import InputError
        from tests.tiny import tiny_model
        for work in (starr.generate, starr.stream, starr.infill):
            print(inspect.signature(work).parameters["wildness"].default)
        print(len(starr.generate(tiny_model(), "some", max_tokens=4, wildness=1).tokens) <= 4)
        try:
            starr.generate(tiny_model(), "some", wildness=3)
        except InputError as error:
            print(error)
    """)
    *found, refused = said.splitlines()
    assert found == ["0.5", "0.5", "0.5", "True"]
    assert re.findall(r"wildness|\d", refused) == ["wildness", "0", "2", "3"]


def test_a_new_option_is_a_flag_of_every_verb_that_decodes():
    said = with_new_option("""
        from starr.cli.main import main
        for verb in ("run", "chat", "race", "bench", "eval", "tune", "reproduce"):
            main([verb, "--help"])
        print(main(["run", "hello", "--wildness", "9"]))
    """)
    assert said.count("--wildness") == 7
    assert said.count("How wild.") == 7
    assert said.splitlines()[-1] == "2"


def test_a_new_option_can_be_set_in_a_chat():
    said = with_new_option("""
        from starr.cli.session import Session, obey
        session = Session(options=starr.options.Options())
        session, message = obey(session, "/set wildness 1.5")
        print(message, session.options.wildness)
        print([line for line in obey(session, "/set")[1].splitlines() if "wild" in line])
    """)
    assert said.splitlines() == ["wildness 1.5 1.5", "['wildness 1.5']"]


def test_a_new_option_is_a_field_over_http():
    said = with_new_option("""
        from starr.server.http.bodies import ChatBody, CompletionBody, InfillBody
        for body in (ChatBody, CompletionBody, InfillBody):
            print(body.model_json_schema()["properties"]["wildness"]["description"])
        print(CompletionBody(prompt="x", wildness=1.25).given())
    """)
    assert said.splitlines() == ["How wild."] * 3 + ["{'wildness': 1.25}"]


def test_a_new_option_is_a_setting_of_evaluations():
    said = with_new_option("""
        from starr.evals.run.runs import EvalSettings
        from starr.options import Options
        settings = EvalSettings("task", "model", "weights", "text", "float32", "chat", Options(wildness=0.75))
        print(settings.to_dict()["wildness"])
        old = EvalSettings("task", "model", "weights", "text", "float32", "chat", Options()).to_dict()
        del old["wildness"]  # samples of a time before the option had its default
        try:
            settings.check_same(old, "folder")
        except Exception as error:
            print(error)
    """)
    assert said.splitlines()[0] == "0.75"
    assert re.search(r"folder .*wildness 0\.5.* 0\.75", said)


def test_a_new_option_travels_from_every_door_to_its_reader():
    """One line in ``options.py`` and one reader, which finds the value in ``request.options``: nothing in between."""
    said = with_new_option("""
        from dataclasses import replace
        from starr.cli.main import main
        from starr.cli.session import Session, obey
        from starr.cluster.worker import PromptWorker
        from starr.decode.engine import Engine
        from starr.evals.run.runs import Run, requests_for, settings_for
        from starr.evals.tasks import load_task
        from starr.integrations.lm_eval_options import decoding, of_request
        from starr.options import Options
        from starr.server.http.bodies import CompletionBody
        from starr.server.http.read import build_rows, read_body
        from starr.server.settings import Settings
        from tests.tiny import tiny_model

        read, add, model = [], Engine.add, tiny_model()

        def reader(engine, request):
            read.append(request.options.wildness)
            return add(engine, request)

        Engine.add = reader

        def door(name, work):
            read.clear()
            work()
            print(name, sorted(set(read)))

        def added(requests):
            for request in requests:
                Engine(model).add(request)

        door("generate", lambda: starr.generate(model, ["a", "b"], max_tokens=2, wildness=1.5))
        door("stream", lambda: list(starr.stream(model, "a", max_tokens=2, wildness=1.5)))
        door("infill", lambda: starr.infill(model, "a [MASK:1]", wildness=1.5))
        door("default", lambda: starr.generate(model, "a", max_tokens=2))
        door("flag", lambda: main(["run", "a", "--max-tokens", "2", "--wildness", "1.5", "--quiet"]))
        session, _ = obey(Session(options=Options(max_tokens=2)), "/set wildness 1.5")
        door("set", lambda: list(starr.stream(model, "a", **session.arguments)))
        asked = read_body(CompletionBody(prompt="a", max_tokens=2, wildness=1.5, n=2), model, Settings())
        door("json", lambda: added(build_rows(asked, model, Settings())))
        task = replace(load_task("lines", None), max_tokens=4)
        shared = settings_for(model, task, form="base", options=Options(wildness=1.5))
        door("eval", lambda: added(requests_for(model, [replace(task.items[0], prompt="a")], Run("starr"), shared)))
        chosen = of_request({"until": ["x"], "max_gen_toks": 2}, decoding({"wildness": 1.5}, {}))
        door("lm_eval", lambda: starr.generate(model, "a", **chosen))
        worker = PromptWorker.__new__(PromptWorker)
        worker.model, worker.prompts, worker.rows, worker.options = model, ["a"], 1, Options(max_tokens=2, wildness=1.5)
        door("cluster", lambda: list(worker.decoder(None)([0])))
    """)
    doors = ("generate", "stream", "infill", "flag", "set", "json", "eval", "lm_eval", "cluster")
    found = [line for line in said.splitlines() if line.endswith("]")]
    assert sorted(found) == sorted([*(f"{door} [1.5]" for door in doors), "default [0.5]"])


def test_keywords_are_the_fields():
    fields = [field.name for field in dataclasses.fields(BatchOptions)]
    assert [*inspect.signature(starr.generate).parameters][2:] == fields
    assert [*inspect.signature(starr.stream).parameters][2:] == fields[:-2]  # all but batch_size and progress
    assert Options(seed=3).keywords()["seed"] == 3


def test_every_option_says_what_it_is():
    for option in by_name().values():
        assert option.type in ("str", "int", "float", "bool")
        assert option.help.endswith(".")
        assert set(option.doors) <= set(EVERYWHERE)
        assert "python" in option.doors


def test_defaults_pass_their_own_checks():
    for option in options_at():
        check_option(option.name, option.default)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("seed", True, "seed must be a whole number within [0, 9223372036854775807], got True."),
        ("temperature", float("nan"), "temperature must be within [0, 100], got nan."),
        ("top_p", 0, "top_p must be within (0, 1], got 0."),
        ("block_length", -1, "block_length must be a whole number within [0, 1048576], got -1."),
        ("eos", "maybe", "eos must be one of normal, never, last, got 'maybe'."),
    ],
)
def test_bounds_are_checked_when_options_are_made(name, value, words):
    with pytest.raises(InputError) as caught:
        Options(**{name: value})
    assert str(caught.value) == words
    assert caught.value.param == name


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("bundled", "A model is what starr.load gives, got 'bundled'. Write starr.load('bundled')."),
        (Path("folder"), "Write starr.load('folder')."),
        (None, "A model is what starr.load gives, got None. Write starr.load()."),
    ],
)
def test_what_is_no_model_is_one_line(model, told):
    calls = [lambda call=call: call(model, "x") for call in (starr.generate, starr.stream, starr.infill)]
    for call in (*calls, lambda: starr.choose(model, "x", ["a", "b"])):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value).endswith(told)
        assert caught.value.param == "model"


def test_only_the_door_reads_preset_files(tmp_path):
    """``starr.strategy`` and keywords read ``@FILE``; what makes a row of a stranger's text does not."""
    path = tmp_path / "preset.json"
    path.write_text('{"strategy": "threshold:tau=0.8"}')
    assert starr.strategy(f"@{path}") == starr.strategy("threshold:tau=0.8")
    assert api.read_files(Options(strategy=f"@{path}")).strategy == "threshold:tau=0.8"
    from tests.tiny import tiny_model

    with pytest.raises(InputError, match="Unknown strategy '@"):
        api.build_request(tiny_model(), "x", Options(strategy=f"@{path}"))
