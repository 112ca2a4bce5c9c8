"""What people write out of habit: types of other libraries, names of other tools, several answers."""

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import starr
from starr.errors import InputError
from starr.model.device import choose_device, read_dtype
from starr.model.files.hub import locate
from starr.options import Options
from tests.tiny import tiny_model

MODEL = tiny_model()
SHORT = {"max_tokens": 8}


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("max_tokens", np.int64(8), 8),
        ("seed", np.uint8(3), 3),
        ("seed", torch.tensor(3), 3),
        ("temperature", np.float32(0.5), 0.5),
        ("temperature", np.float64(0.5), 0.5),
        ("trace", np.bool_(True), True),
    ],
)
def test_numbers_of_other_libraries_are_numbers(name, value, plain):
    kept = getattr(Options(**{name: value}), name)
    assert (kept, type(kept)) == (plain, type(plain)) or isinstance(kept, type(plain))
    with pytest.raises(InputError):
        Options(seed=np.float32(1.5))


def test_a_strategy_takes_its_options_as_keywords():
    assert starr.strategy("threshold", tau=0.8) == starr.strategy("threshold:tau=0.8")
    assert starr.strategy("threshold", tau=np.float64(0.8)) == starr.strategy("threshold:tau=0.8")
    assert starr.strategy("starr:preset=math500", scale=2.0).temporal_window == 5
    assert starr.strategy(starr.strategy("threshold"), tau=0.8).tau == 0.8
    assert starr.cache("dkv", refresh=3) == starr.cache("dkv:refresh=3")
    for wrong in ({"tua": 0.8}, {"tau": "high"}, {"tau": 7.0}):
        with pytest.raises(InputError):
            starr.strategy("threshold", **wrong)


@pytest.mark.parametrize(
    ("given", "form"),
    [
        ({"tau": 0.9}, 'strategy="threshold:tau=0.9"'),
        ({"tau": 0.9, "strategy": "starr"}, 'strategy="threshold:tau=0.9"'),
        ({"temporal_window": 5}, 'strategy="starr:temporal_window=5"'),
        ({"refresh": 4}, 'cache="dkv:refresh=4"'),
        ({"max_new_tokens": 4}, "max_tokens"),
        ({"num_return_sequences": 4}, "That is n here"),
        ({"temprature": 4}, "'temperature'"),
    ],
)
def test_an_option_of_a_strategy_is_told_its_text_form(given, form):
    for work in (starr.generate, starr.stream):
        with pytest.raises(InputError) as caught:
            work(MODEL, "some", **given)
        assert form in caught.value.hint
        assert caught.value.param == next(iter(given))


def test_swapped_arguments_are_told():
    for work in (starr.generate, starr.stream, starr.infill):
        with pytest.raises(InputError, match="The model comes first"):
            work("some", MODEL)


def test_dtypes_and_devices_of_torch():
    assert read_dtype(torch.bfloat16) == read_dtype("torch.bfloat16") == read_dtype("bfloat16") == "bfloat16"
    assert choose_device(torch.device("cpu")) == torch.device("cpu")
    assert starr.load(dtype=torch.float32, device=torch.device("cpu")).dtype == torch.float32


@pytest.mark.parametrize(
    ("work", "word"),
    [
        (lambda: choose_device("gpu"), "cuda"),
        (lambda: read_dtype("bf16"), "bfloat16"),
        (lambda: read_dtype("half"), "float16"),
        (lambda: starr.load(torch_dtype=torch.float32), "dtype"),
        (lambda: starr.load(device_map="auto"), 'device="cuda" or "cpu"'),
        (lambda: starr.load(load_in_4bit=True), "bfloat16"),
        (lambda: starr.load(trust_remote_code=True), "not needed"),
        (lambda: starr.load(dtypes="float32"), "'dtype'"),
        (lambda: locate("bundeld"), "'bundled'"),
        (lambda: locate("LLaDA-8B-Instruct"), "'GSAI-ML/LLaDA-8B-Instruct'"),
        (lambda: locate("llada-8b-instruct"), "'GSAI-ML/LLaDA-8B-Instruct'"),
        (lambda: locate("something-else"), "owner/name"),
        (lambda: starr.strategy("threshold,tau=0.3"), "threshold:tau=0.3"),
        (lambda: starr.strategy("threshold(tau=0.3)"), "threshold:tau=0.3"),
    ],
)
def test_hints_are_right(work, word):
    with pytest.raises(InputError) as caught:
        work()
    assert word in caught.value.hint


def test_a_folder_of_gguf_is_told_what_it_is(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    for source in (tmp_path, tmp_path / "model.gguf"):
        with pytest.raises(InputError, match="GGUF"):
            locate(str(source))


def test_several_answers_have_seeds_that_follow_each_other():
    draw = {"temperature": 1.0, **SHORT}
    three = starr.generate(MODEL, "some", n=3, seed=4, **draw)
    assert [g.seed for g in three] == [4, 5, 6]
    assert [g.tokens for g in three] == [starr.generate(MODEL, "some", seed=s, **draw).tokens for s in (4, 5, 6)]
    assert len({tuple(g.tokens) for g in three}) > 1
    chosen = starr.generate(MODEL, ["some", "other"], seeds=np.array([9, 2]), **draw)
    assert [g.seed for g in chosen] == [9, 2, 9, 2]
    assert chosen[2].tokens == starr.generate(MODEL, "other", seed=9, **draw).tokens
    assert [g.seed for g in starr.generate(MODEL, "some", seeds="7,8", **draw)] == [7, 8]
    assert len(starr.generate(MODEL, "some", n=1, **draw)) == 1
    assert len(starr.infill(MODEL, "so [MASK:2]", n=2, temperature=1.0)) == 2


@pytest.mark.parametrize("given", [{"n": 0}, {"n": 2, "seeds": [1]}, {"seeds": [-1]}, {"seeds": ["x"]}, {"n": 1.5}])
def test_what_are_no_seeds_is_one_line(given):
    with pytest.raises(InputError) as caught:
        starr.generate(MODEL, "some", **given, **SHORT)
    assert caught.value.param in given


def test_the_same_prompt_twice_with_one_seed_is_told():
    with pytest.warns(UserWarning, match="same seed"):
        same = starr.generate(MODEL, ["some", "some"], temperature=1.0, **SHORT)
    assert same[0].tokens == same[1].tokens
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        starr.generate(MODEL, ["some", "some"], **SHORT)  # nothing is drawn
        starr.generate(MODEL, ["some", "other"], temperature=1.0, **SHORT)
        starr.generate(MODEL, "some", temperature=1.0, n=2, **SHORT)


TYPED = """
import starr
from starr import Generation

model = starr.load()
one: Generation = starr.generate(model, "text", max_tokens=4)
said: Generation = starr.generate(model, [{"role": "user", "content": "hi"}])
ids: Generation = starr.generate(model, [1, 2, 3])
many: list[Generation] = starr.generate(model, ["a", "b"])
lazy: list[Generation] = starr.generate(model, (word for word in "ab"))
chats: list[Generation] = starr.generate(model, [[{"role": "user", "content": "hi"}]])
several: list[Generation] = starr.generate(model, "text", n=3)
seeded: list[Generation] = starr.generate(model, "text", seeds=[1, 2])
filled: Generation = starr.infill(model, "a [MASK:1]")
fills: list[Generation] = starr.infill(model, ["a [MASK:1]"])
"""
WRONG = """
wrong_one: str = starr.generate(model, "text")
wrong_many: Generation = starr.generate(model, ["a", "b"])
wrong_keyword = starr.generate(model, "text", max_token=4)
"""


def test_mypy_sees_what_comes_back(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    check_types([sys.executable, "-m", "mypy", "--strict"], tmp_path)


def test_pyright_sees_the_same(tmp_path):
    pytest.importorskip("pyright", reason="pyright is not installed")
    check_types([sys.executable, "-m", "pyright"], tmp_path)


def check_types(command, folder):
    """The right lines pass, and every wrong one is named."""
    file = folder / "user.py"
    file.write_text(TYPED)
    root = str(Path(starr.__file__).parents[1])
    environment = {"MYPYPATH": root, "PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": root}
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, env=environment, cwd=folder)
    ours = [line for line in done.stdout.splitlines() if "user.py" in line and "error" in line]
    assert ours == [], done.stdout
    file.write_text(TYPED + WRONG)
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, env=environment, cwd=folder)
    first = TYPED.count("\n")
    named = {line.split(":")[1] for line in done.stdout.splitlines() if "user.py" in line and "error" in line}
    assert named == {str(first + 2), str(first + 3), str(first + 4)}, done.stdout


def test_a_system_prompt_goes_before_the_messages(tmp_path):
    from starr.api import build_request
    from tests.model.tiny import write_llada

    model = starr.load(write_llada(tmp_path))
    said = [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}]
    whole = build_request(model, said, Options(**SHORT)).tokens
    assert build_request(model, "hi", Options(system="be", **SHORT)).tokens == whole
    assert build_request(model, said[1:], Options(system="be", **SHORT)).tokens == whole
    refused = [(said, {}), ([1, 2], {}), ("hi", {"chat": False}), ("hi [MASK:1]", {"infill": True})]
    for prompt, more in refused:
        with pytest.raises(InputError, match="system"):
            build_request(model, prompt, replace(Options(system="be", **SHORT), **more))


def test_help_says_what_every_keyword_and_field_is():
    from dataclasses import fields

    from starr.decode.canvas import Canvas
    from starr.options import ManyOptions, read_fields

    for shown, kind in ((starr.generate, ManyOptions), (starr.Options, Options), (starr.stream, Options)):
        lines = shown.__doc__.splitlines()
        for option in read_fields(kind):
            (line,) = [line for line in lines if line.startswith(f"    {option.name}: ")]
            assert option.help in line
            assert (option.absent or repr(option.default)) in line
            assert all(choice in line for choice in option.choices)
    assert "from 0 to 100." in starr.generate.__doc__
    for kind in (starr.StepView, starr.Decision, Canvas):
        assert not [field.name for field in fields(kind) if f"    {field.name}: " not in kind.__doc__]


@pytest.mark.parametrize("signal", ["entropy", "margin", "gap", "distribution", "noise"])
def test_the_page_for_extensions_names_every_signal(signal):
    page = (Path(__file__).parents[1] / "docs" / "extend.md").read_text(encoding="utf8")
    assert f"`{signal}`" in page


def test_a_float_action_is_refused():
    from dataclasses import dataclass
    from typing import ClassVar

    @dataclass(frozen=True, kw_only=True)
    class Wrong(starr.Strategy):
        name: ClassVar[str] = "wrong"

        def decide(self, view, carry):
            return starr.Decision(view.masked * view.confidence), carry

    with pytest.raises(InputError, match="float32"):
        starr.generate(MODEL, "some", strategy=Wrong(), **SHORT)
