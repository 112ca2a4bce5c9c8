"""Every prompt that is printed for people to type is answered rightly by the bundled model: by value."""

import html
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import starr
from starr.cli.app import app
from starr.model.device import explain_half_trouble
from starr.model.files.hub import BUNDLED_FOLDER
from starr.model.known import read_known

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "src" / "starr" / "server" / "live.html", *sorted((ROOT / "src" / "starr" / "model").rglob("README.md")),
    *sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")),
]  # fmt: skip
QUOTED = re.compile(r'(?<!")"(?!")([^"\n]+)"|<textarea[^>]*>([^<]+)<')
"""Texts between quotation marks, but not docstrings, and what stands in a field of a page."""

TOM = "Tom has 12 apples. Tom buys 8 more. Then Tom gives 5 to a friend. How many apples does Tom have now?"
MIA = "Mia starts with 50 shells. Then she gives 5 to a friend. After that, Mia drops 6. How many shells does Mia have?"
IDA = (
    "Ida starts with 42 pears. Then she gives 3 to a friend. After that, Ida shares them equally among 3 friends. "
    "Tell me, how many pears does each friend get?"
)
SOLVED = {TOM: 12 + 8 - 5, MIA: 50 - 5 - 6}
SMALL = {
    "Tom has 3 apples.": 3,
    "Tom has 3 apples. How many apples does Tom have?": 3,
    "Tom has 3 apples. Tom buys 4 more. How many apples does Tom have?": 3 + 4,
    "Tom has 3 apples. Then he gives 1 to a friend. How many apples does Tom have?": 3 - 1,
    "Ben has 4 bags with 5 eggs in each. How many eggs does Ben have?": 4 * 5,
}
FUNCTIONS = {
    "Write a function that keeps the even numbers and adds them all up.": lambda xs: sum(x for x in xs if x % 2 == 0),
    "Write a function that keeps the even numbers, adds 3 to each and returns the sum.": lambda xs: sum(
        x + 3 for x in xs if x % 2 == 0
    ),
}
HOLES = {
    "Now there are 12 + 8 =[MASK:2] apples. So that leaves 20 - 5 = 15 apples. #### 15": 12 + 8,
    "Now there are 12 + 8 =[MASK] apples. So that leaves 20 - 5 =[MASK] apples. #### 15": 12 + 8,
}
"""What the first hole holds; the second text is one for ``starr.choose``."""

LINE, REVERSED = "Reverse this line: 1 Tom 2 Ana 3 Leo.", ["1 Leo 2 Ana 3 Tom", "1 Ana 2 Leo 3 Tom"]
"""For choices, the right one first."""

OTHER_MODELS = {"Explain masked diffusion in two sentences."}
LISTS = ([5, 1, 4, 2], [], [7], [8, 8, -2])
SETTINGS = [
    {}, {"strategy": "starr", "block_length": 32}, {"strategy": "threshold", "max_tokens": 64},
    {"strategy": "threshold:tau=0.95", "block_length": 32}, {"strategy": "confidence", "max_tokens": 64},
    {"strategy": "starr", "max_tokens": 64}, {"strategy": "threshold:tau=0.95", "block_length": 16, "max_tokens": 64},
    {"strategy": "starr", "block_length": 16, "max_tokens": 64}, {"strategy": "threshold:tau=0.95", "max_tokens": 64},
    {"strategy": "starr", "block_length": 32, "max_tokens": 64}, {"strategy": "threshold"}, {"strategy": "confidence"},
    {"strategy": "calibrated"},
]  # fmt: skip
"""Those of the pages: without flags, the server's, and those of the examples."""


def is_prompt(text: str) -> bool:
    """A sentence of four words and more, or a text with holes."""
    return "[MASK" in text or (len(text.split()) > 3 and text[0].isupper() and text.rstrip()[-1] in ".?")


def test_the_example_of_smoothing_is_answered_rightly():
    assert f'"{MIA}" --smoothing 1' in (ROOT / "docs" / "guide.md").read_text(encoding="utf8")
    answer = starr.generate(starr.load(), MIA, smoothing=1.0).text
    assert answer.endswith(f"#### {SOLVED[MIA]}")


def test_the_example_of_verified_decoding_is_repaired():
    """The draft alone writes two words that do not fit together; verified, every sentence is one of the task."""
    page = (ROOT / "docs" / "verified.md").read_text(encoding="utf8")
    assert f'"{IDA}" --strategy calibrated:budget=2 --verify 0.3' in page
    model = starr.load()
    draft, checked = (starr.generate(model, IDA, strategy="calibrated:budget=2", verify=ratio) for ratio in (0.0, 0.3))
    assert "Each each" in draft.text
    assert checked.text == f"Now there are 42 - 3 = 39 pears. So each gets 39 / 3 = {(42 - 3) // 3} pears. #### 13"
    assert checked.text in page


def text_of(page: Path) -> str:
    text = page.read_text(encoding="utf8")
    if page.suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return html.unescape(text)


def helps() -> list[str]:
    """The help of every verb, as it is printed."""
    verbs = [str(command.name) for command in (*app.registered_commands, *app.registered_groups)]
    return [CliRunner().invoke(app, [verb, "--help"]).output for verb in verbs]


def test_every_printed_prompt_has_its_answer_here():
    texts = [*map(text_of, PAGES), *helps()]
    printed = {
        first or second for text in texts for first, second in QUOTED.findall(text) if is_prompt(first or second)
    }
    assert printed == {*SOLVED, IDA, *FUNCTIONS, *HOLES, LINE, *OTHER_MODELS}


@pytest.mark.parametrize(
    ("text", "caught"),
    [('starr run "Mia has 5 pens. How many?"', True), ('x = "starr run"', False), ('"""Four words are here."""', False),
     ("<textarea rows=3>Tom has 3 apples.<", True), ('--infill "Tom has [MASK:2] apples"', True)],
)  # fmt: skip
def test_prompts_are_told_from_other_words(text, caught):
    assert any(is_prompt(first or second) for first, second in QUOTED.findall(text)) == caught


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def model(request):
    """In both dtypes that a CPU may choose."""
    if request.param == "bfloat16" and explain_half_trouble("bfloat16"):
        pytest.skip(explain_half_trouble("bfloat16"))
    return starr.load(dtype=request.param)


@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: "-".join(map(str, options.values())) or "default")
def test_the_bundled_model_answers_rightly(model, options):
    texts = [run.text for run in starr.generate(model, [*SOLVED, *FUNCTIONS], **options)]
    assert [text.rpartition("#### ")[2] for text in texts[: len(SOLVED)]] == [str(value) for value in SOLVED.values()]
    for text, rule in zip(texts[len(SOLVED) :], FUNCTIONS.values(), strict=True):
        names = {}
        exec(text, names)  # what a test of ours asked for, in its own words
        assert [names["f"](list(given)) for given in LISTS] == [rule(given) for given in LISTS]


@pytest.mark.parametrize("strategy", ["confidence", "threshold", "starr"])
def test_the_bundled_model_knows_small_numbers(model, strategy):
    """As people write them to try a model; none of these is printed."""
    texts = [run.text for run in starr.generate(model, list(SMALL), strategy=strategy, max_tokens=64)]
    assert [text.rpartition("#### ")[2] for text in texts] == [str(value) for value in SMALL.values()]


def test_the_bundled_model_fills_holes_rightly(model):
    for prompt, value in HOLES.items():
        if "[MASK:" in prompt:
            before, after = re.split(r"\[MASK:\d+\]", prompt)
            assert starr.infill(model, prompt).text == f"{before} {value}{after}"


def test_the_bundled_model_chooses_rightly(model):
    """As ``docs/structured.md`` shows it."""
    first, second = starr.choose(model, list(HOLES)[1], [[" 20", " 18", " 96"], [" 15", " 25", " 10"]])
    assert (first.text, second.text) == (" 20", " 15")
    assert first.probability > 0.9
    assert starr.generate(model, LINE, choices=REVERSED, max_tokens=16).text == REVERSED[0]
    assert starr.choose(model, LINE, REVERSED).text == REVERSED[0]
    assert starr.generate(model, TOM, regex=r"[A-Z][^#]+#### [0-9]{1,3}", max_tokens=64).text.endswith("#### 15")


@pytest.mark.parametrize("prompt", [*SOLVED, *FUNCTIONS, *HOLES, LINE], ids=lambda prompt: prompt.split()[0])
def test_no_printed_prompt_is_called_strange(prompt):
    assert read_known(BUNDLED_FOLDER).doubt(prompt) == ""
