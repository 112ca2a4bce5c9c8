"""What a shell user expects: pipes, completion, files that are named, numbers that agree with their nouns."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from starr.errors import counted
from starr.viewer.words import LOOK

STARR = [sys.executable, "-m", "starr"]

GONE = (
    "Elect the answer", "Elect an answer", "count out", "unkind end", "They part at", " elected ", "the most is",
    "budget where nobody says else", "says of itself", "without chance", "by its own chance", "As of lm_eval",
    "answer rightly", "Ask another one", "died of signal", "left without a word", "Make the verb known",
)  # fmt: skip


def call(arguments, **more):
    return subprocess.run([*STARR, *arguments], capture_output=True, text=True, check=False, **more)


def test_python_m_starr_is_the_command():
    assert call(["--version"]).stdout.startswith("starr ")


def test_a_piped_prompt_needs_no_dash(tiny):
    flags = ["run", "--model", tiny, "--max-tokens", "4", "--json", "--quiet"]
    piped, dashed = call(flags, input="hello"), call([*flags, "-"], input="hello")
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.split('"stats"')[0] == dashed.stdout.split('"stats"')[0]


@pytest.mark.parametrize(
    "verb", [["race", "--strategies", "starr", "--max-tokens", "4"], ["choose", "--choices", "a|b"]]
)
def test_every_verb_that_takes_a_prompt_reads_a_pipe(tiny, verb):
    flags = [*verb, "--model", tiny, "--json", "--quiet"]
    piped = call(flags, input="hello")
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout


@pytest.mark.parametrize("verb", [["run"], ["race"], ["choose", "--choices", "a|b"]])
def test_an_empty_pipe_is_told_what_to_give(verb):
    child = call(verb, stdin=subprocess.DEVNULL)
    assert (child.returncode, child.stdout) == (2, "")
    assert all(word in child.stderr for word in ("PROMPT", "pipe"))


def test_no_verb_shows_the_help():
    assert "Usage: starr" in call([]).stdout


def test_head_may_close_the_pipe():
    line = f"{sys.executable} -m starr strategies | head -n 1; exit ${{PIPESTATUS[0]}}"
    child = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")


def test_the_shell_completes_verbs_and_flags():
    shell = os.environ | {"_STARR_COMPLETE": "complete_bash"}
    assert call([], env=shell | {"COMP_WORDS": "starr ra", "COMP_CWORD": "1"}).stdout.split() == ["race"]
    found = call([], env=shell | {"COMP_WORDS": "starr run --max", "COMP_CWORD": "2"}).stdout.split()
    assert {"--max-tokens", "--max-forwards"} <= set(found)
    assert all(flag.startswith("--max") for flag in found)


@pytest.mark.parametrize("flag", ["--out", "--trace", "--html"])
def test_every_file_that_is_written_is_named(run, tmp_path, flag):
    path = tmp_path / "file.html"
    assert f"wrote {path}" in run("run", "hello", flag, path).err
    assert path.exists()
    assert run("run", "hello", flag, path, "--quiet").err == ""


def test_a_race_and_a_file_of_prompts_name_their_file(run, tmp_path):
    (tmp_path / "in.jsonl").write_text('"hello"\n')
    assert f"wrote {tmp_path / 'a.html'}" in run("race", "hello", "-o", tmp_path / "a.html").err
    assert (
        f"wrote {tmp_path / 'o.jsonl'}" in run("run", "--input", tmp_path / "in.jsonl", "-o", tmp_path / "o.jsonl").err
    )


VERBS = [
    "run", "chat", "choose", "race", "demo", "eval", "reproduce", "analyze", "tune", "calibrate", "bench", "serve",
    "doctor", "trace show", "trace plot", "trace vote", "strategies show", "models show",
]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_helps_are_plain(starr, verb):
    """Arguments by name alone, and no type of Python's where a person reads a number or a file."""
    text = starr(*verb.split(), "--help").out
    usage, arguments = text.splitlines()[0], text.partition("Arguments:\n")[2].partition("\n\n")[0]
    assert "list[" not in text
    assert "range>" not in text
    assert not set("{}<>") & set(usage + arguments)
    assert "[[" not in usage
    assert "]...]" not in usage


def test_helps_name_every_result_and_every_task(starr):
    from starr.evals.tasks import MODULES
    from starr.research.reproduce import RESULTS

    words = set(re.findall(r"[\w-]+", starr("reproduce", "--help").out))
    assert {*RESULTS, "all"} <= words
    assert MODULES.keys() <= set(re.findall(r"[\w-]+", starr("eval", "--help").out))


@pytest.mark.parametrize("verb", ["run", "chat", "race", "bench", "strategies"])
def test_the_fields_own_word_stands_beside_ours(starr, verb):
    assert re.search(r"revoked? \(remask(ed)?\)", " ".join(starr(verb, "--help").out.split()))


def test_numbers_agree_with_their_nouns():
    assert [counted(number, "forward") for number in (0, 1, 2)] == ["0 forwards", "1 forward", "2 forwards"]


def test_words_that_nobody_says_are_gone():
    """Phrases that no speaker of the field's English would use, in what people read."""
    root = Path(__file__).parents[2]
    sources = [file for kind in ("py", "js", "html") for file in (root / "src").rglob(f"*.{kind}")]
    files = [*sources, *(root / "benchmarks").glob("*.py"), *(root / "docs").glob("*.md"), root / "README.md"]
    text = "\n".join(file.read_text(encoding="utf8") for file in files)
    assert not [phrase for phrase in GONE if phrase in text]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/strategies.md", "src/starr/server/live.html"])
def test_pages_that_people_meet_first_say_remask(page):
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf8")
    assert re.search(r"revoked? \(remask(ed)?\)", text)


def test_the_viewers_legend_says_remask():
    assert "revoked (remasked)" in LOOK["held"].meaning


def test_a_machine_in_words():
    from starr.evals.run.results import place_of

    here = {"gpu": None, "processor": "CPU", "cores": 1, "threads": 2}
    assert place_of(here) == "CPU, 1 core, 2 threads"
    assert place_of(here | {"gpu": "H100"}) == "H100"
