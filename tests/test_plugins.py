"""Members from outside: registered by a script, or brought by a package that is installed from a folder."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

import starr
from starr.errors import InputError
from tests.tiny import tiny_model

PACKAGE = Path(__file__).parent / "plugin"
PAGE = Path(__file__).parents[1] / "docs" / "extend.md"


@pytest.fixture
def first(forget):
    @starr.register
    @dataclass(frozen=True, kw_only=True)
    class First(starr.Strategy):
        """Commit the first masks."""

        name: ClassVar[str] = "first-mask"
        many: int = starr.option(1, "masks a step", low=1, high=4)

        def decide(self, view, carry):
            return starr.Decision(starr.commits(view.masked & (view.masked.cumsum(1) <= self.many))), carry

    return First


def test_a_registered_strategy_decodes_under_its_name(first):
    result = starr.generate(tiny_model(), "prompt", strategy="first-mask:many=2", max_tokens=8, eos="never")
    assert result.strategy == "first-mask:many=2"
    assert result.stats.forwards == 4
    assert "first-mask" in [entry.name for entry in starr.strategies()]


def test_its_options_have_errors_like_ours(first):
    with pytest.raises(InputError, match=r"many.*\[1, 4\].*9"):
        starr.strategy("first-mask:many=9")
    with pytest.raises(InputError, match=r"mny.*many"):
        starr.strategy("first-mask:mny=2")


def test_a_class_defined_again_takes_its_own_place(forget):
    def define(default):
        @starr.register
        @dataclass(frozen=True, kw_only=True)
        class Again(starr.Strategy):
            """As in a notebook."""

            name: ClassVar[str] = "again"
            many: int = default

            def decide(self, view, carry):
                return starr.Decision(starr.commits(view.masked)), carry

        return Again

    define(1)
    second = define(2)
    assert type(starr.strategy("again")) is second
    assert starr.strategy("again").many == 2


def test_another_class_cannot_take_a_name(forget):
    with pytest.raises(InputError, match=r"strategies\.threshold\.Threshold"):

        @starr.register
        @dataclass(frozen=True, kw_only=True)
        class Mine(starr.Strategy):
            name: ClassVar[str] = "threshold"


def test_what_is_nothing_of_ours_is_refused():
    with pytest.raises(InputError, match="int"):
        starr.register(int)

    class Bare(starr.Strategy):
        name: ClassVar[str] = "bare"

    with pytest.raises(InputError, match=r"Bare.*dataclass"):
        starr.register(Bare)


def define(word, given=0.5, kind=float):
    """A strategy whose ``decide`` returns ``word(view, carry)``."""

    @starr.register
    @dataclass(frozen=True, kw_only=True)
    class Wrong(starr.Strategy):
        """Somebody's first."""

        name: ClassVar[str] = "wrong"
        share: kind = given

        def decide(self, view, carry):
            return word(view, carry)

    return Wrong


@pytest.mark.parametrize(
    ("word", "told"),
    [
        (lambda view, carry: None, "it gave NoneType"),
        (lambda view, carry: starr.Decision(view.masked), "it gave Decision"),
        (lambda view, carry: (view.masked, carry), "it gave Tensor and dict"),
        (lambda view, carry: (starr.Decision(view.masked[:, :3]), carry), r"it gave bool of shape \[1, 3\]"),
        (lambda view, carry: (starr.Decision(view.masked.tolist()), carry), "it gave list"),
    ],
)
def test_a_wrong_decide_is_one_clear_error(forget, word, told):
    define(word)
    with pytest.raises(InputError, match=rf"wrong\.decide.* \[1, 8\].*{told}") as caught:
        starr.generate(tiny_model(), "prompt", strategy="wrong", max_tokens=8)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        (
            lambda view, _: view.confidense,
            "'StepView' object has no attribute 'confidense'. Did you mean 'confidence'?",
        ),
        (lambda view, _: view.masked.summ(), "'Tensor' object has no attribute 'summ'."),
        (lambda view, _: view.entropy.sum(), "A field of the view is None unless the strategy's signals name it."),
    ],
)
def test_an_attribute_that_is_not_there_is_one_clear_error(forget, word, told):
    define(word)
    with pytest.raises(InputError, match=re.escape(told) + "$") as caught:
        starr.generate(tiny_model(), "prompt", strategy="wrong", max_tokens=8)
    assert str(caught.value).startswith("wrong.decide: ")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.__cause__, AttributeError)


def short(self, view):
    """A ``decide`` without the memory."""


@pytest.mark.parametrize(
    ("base", "methods", "told"),
    [
        (starr.Strategy, {}, "Odd needs a method decide. Write: def decide(self, view, carry): ..."),
        (
            starr.Strategy,
            {"decide": short},
            "Odd.decide must take (self, view, carry), it takes (self, view). Write: def",
        ),
        (starr.Cache, {}, "Odd needs a method query. Write: def query(self, canvas): ..."),
        (starr.StopRule, {"judge": short}, "Odd.judge must take (self, view, moment), it takes (self, view)."),
    ],
)
def test_wrong_methods_are_one_clear_error(forget, base, methods, told):
    odd = dataclass(frozen=True, kw_only=True)(type("Odd", (base,), {"name": "odd", **methods}))
    with pytest.raises(InputError, match=re.escape(told)):
        starr.register(odd)
    if base is starr.Strategy:  # nobody has to register what is given as it is
        with pytest.raises(InputError, match=re.escape(told)):
            starr.generate(tiny_model(), "prompt", strategy=odd(), max_tokens=8)


def test_a_method_may_take_more_than_it_must(forget):
    generous = {"decide": lambda self, view, carry, more=1: None, "name": "odd"}
    starr.register(dataclass(frozen=True, kw_only=True)(type("Odd", (starr.Strategy,), generous)))


def test_a_plain_field_is_told_from_an_option(forget):
    define(lambda view, carry: None)
    with pytest.raises(InputError) as caught:
        starr.strategy("wrong:share=0.2")
    assert "share: float = starr.option(0.5, " in str(caught.value)
    with pytest.raises(InputError, match="other"):
        starr.strategy("wrong:other=1")


@pytest.mark.parametrize("default", [[1], {}, object])
def test_what_cannot_be_a_default_is_one_clear_error(default):
    with pytest.raises(InputError, match="default"):
        starr.option(default, "x")


@pytest.mark.parametrize(
    ("share", "kind", "told"),
    [
        (field(), float, "Wrong.share needs a default. Write it as share: float = starr.option"),
        (starr.option("half", "x"), float, "Wrong.share must be float, got 'half'"),
        (starr.option(2.0, "x", high=1.0), float, "Wrong.share must be within"),
        (starr.option(None, "x"), list, "Wrong.share cannot be an option of type list. Use int"),
    ],
)
def test_a_wrong_field_is_one_clear_error(forget, share, kind, told):
    with pytest.raises(InputError, match=told):
        define(lambda view, carry: None, share, kind)


def test_a_task_is_registered_as_it_is():
    from starr.evals.tasks import OUTSIDE, load_task

    task = starr.Task("mine", [], lambda item, text: starr.Grade(text, {"right": True}), "right", 8)
    try:
        assert starr.register(task) is task
        assert load_task("mine") is task
    finally:
        OUTSIDE.loaders.pop("mine")
    with pytest.raises(InputError, match="gsm8k"):
        starr.register(starr.Task("gsm8k", [], task.grade, "right", 8))


def test_the_strategy_of_the_page_has_twenty_lines():
    """``tests/test_readme.py`` runs the page, its comparison with the reference too."""
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf8"), re.S)[1]
    assert len(block.partition("model = ")[0].strip().splitlines()) <= 20


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the package as pip installs it."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder), str(PACKAGE)], check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def outside(installed):
    """Run Python with the package installed."""

    def run(*arguments):
        path = os.pathsep.join([str(installed), *filter(None, sys.path)])
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env=os.environ | {"PYTHONPATH": path},
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_a_package_appears_in_every_list(outside):
    done = outside("-m", "starr.cli.main", "strategies", "--json")
    listed = json.loads(done.stdout)
    assert [entry["options"][0]["name"] for entry in listed["strategies"] if entry["name"] == "eager"] == ["count"]
    assert "lazy" in [entry["name"] for entry in listed["caches"]]
    assert "brief" in [entry["name"] for entry in listed["stop_rules"]]
    warned = [line for line in done.stderr.splitlines() if line]
    assert len(warned) == 1
    assert all(word in warned[0] for word in ("absent", "starr-eager", "starr.strategies"))


def test_a_package_decodes_and_has_its_own_errors(outside):
    script = """
import json, warnings
warnings.simplefilter("ignore")
import starr
from starr.decode.catalogue import markdown
from starr.errors import InputError
from starr.evals.tasks import load_task
from starr.server.http.pages import list_members
from tests.tiny import tiny_model
model = tiny_model()
one = starr.generate(model, "x", strategy="eager:count=2", cache="lazy", max_tokens=8, eos="never")
two = starr.generate(model, "x", strategy="eager", stop_rule="brief", max_tokens=16, eos="never")
try:
    starr.strategy("eager:count=0")
except InputError as error:
    line = str(error)
said = [one.strategy, one.cache, one.stats.forwards, two.stats.forwards, line, load_task("echo").max_tokens]
said += ["## eager" in markdown(), "eager" in [entry["id"] for entry in list_members()["data"]]]
print(json.dumps(said))
"""
    said = json.loads(outside("-c", script).stdout)
    assert said[:4] == ["eager:count=2", "lazy", 4, 2]
    assert "count" in said[4]
    assert "[1, 1048576]" in said[4]
    assert said[5:] == [8, True, True]


def test_a_package_races_and_is_evaluated(outside, tmp_path):
    verbs = f"""
from starr.cli.main import main
flags = ["--max-tokens", "16", "--json", "--quiet"]
assert main(["race", "Tom has 3 apples.", "--strategies", "eager,threshold", *flags]) == 0
assert main(["eval", "echo", "--strategy", "eager", "--out", {str(tmp_path / "runs")!r}, *flags[2:]]) == 0
"""
    said = outside("-c", verbs).stdout
    assert '"strategy": "eager"' in said
    assert '"run": "eager"' in said
