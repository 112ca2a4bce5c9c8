"""The error boundary: one line on standard error, the right exit code, no traceback unasked."""

import os
import resource
import subprocess
import sys

import pytest

from starr.cli import main as boundary
from starr.errors import InputError, WorkError

STARR = [sys.executable, "-m", "starr.cli.main"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu"], ["'rnu'", "Did you mean 'run'?"]),
        (["strategies", "shwo"], ["'shwo'", "Did you mean 'show'?"]),
        (["run", "x", "--stratgy", "starr"], ["'--stratgy'", "Did you mean '--strategy'?"]),
        (["run", "x", "--max-tokens", "many"], ["--max-tokens must be a whole number, got 'many'."]),
        (["run", "x", "--temperature", "hot"], ["--temperature must be a number, got 'hot'."]),
        (["run", "x", "--max-tokens", "3", "--max-tokens", "few"], ["--max-tokens", "'few'"]),
        (["run", "x", "--max-tokens=1.5"], ["--max-tokens must be a whole number, got '1.5'."]),
        (["serve", "--port", "99999"], ["--port", "65535", "'99999'"]),
        (["run", "Tom", "has", "5"], ["'has 5'", "put quotes around a text of several words", "starr run --help"]),
        (["trace", "show"], ["FILE"]),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(starr, arguments, words):
    result = starr(*arguments)
    assert result.code == 2
    assert all(word in result.line for word in words)
    assert result.out == ""


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError("x must be 1, got 2.", hint="Use 1."), 2, "x must be 1, got 2. Use 1."),
        (WorkError("The child died."), 1, "The child died."),
        (OSError(28, "No space left on device", "out.json"), 2, "The disk is full writing out.json"),
        (PermissionError(13, "Permission denied", "out.json"), 1, "out.json: Permission denied"),
        (MemoryError(), 1, "Out of memory"),
        (ValueError("two\nlines"), 1, "Internal error: ValueError: two lines"),
    ],
)
def test_errors_become_one_line(monkeypatch, starr, error, code, words):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(boundary, "app", fail)
    result = starr("run", "x")
    assert (result.code, result.out) == (code, "")
    assert words in result.line
    assert "Traceback" not in result.err
    assert "Traceback" in starr("run", "x", "--debug").err


def wrapped_by_python():
    """Ctrl-C while a class is being made, as in the middle of an import."""

    class Interrupted:
        def __set_name__(self, owner, name):
            raise KeyboardInterrupt

    try:
        type("Owner", (), {"field": Interrupted()})
    except BaseException as error:
        return error


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (wrapped_by_python(), 130), (BrokenPipeError(32, "Broken pipe"), 0)],
)
def test_interruption_and_broken_pipe_are_quiet(monkeypatch, starr, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(boundary, "app", fail)
    monkeypatch.setattr(boundary, "silence_stdout", lambda: None)
    result = starr("run", "x")
    assert (result.code, result.err) == (code, "")


def test_a_pipe_that_closes_early_leaves_no_noise():
    reader, writer = os.pipe()
    os.close(reader)
    child = subprocess.run([*STARR, "run", "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (child.returncode, child.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_line():
    with open("/dev/full", "w") as full:
        child = subprocess.run([*STARR, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert child.returncode == 2
    assert child.stderr == "starr: The disk is full. Free space and run again.\n"


def test_help_imports_no_torch_and_takes_under_300_ms_of_cpu():
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = subprocess.run([*STARR, "--help"], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert "demo" in child.stdout
    assert min(seconds) < 0.3


def test_neither_import_nor_help_imports_what_is_heavy():
    heavy = "{'torch', 'rich', 'ray', 'fastapi', 'lm_eval', 'transformers'}"
    show = "from starr.cli.main import main; main(['--help']); main(['eval', '--help']); main(['serve', '--help'])"
    for code in ("import starr, starr.cli.app", show):
        check = f"import sys; {code}; sys.exit(str({heavy} & set(sys.modules) or 0))"
        child = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
        assert child.stderr == "0\n"


def test_every_verb_explains_itself(starr):
    help_text = starr("--help").out
    for verb in ("run", "chat", "race", "demo", "bench", "serve", "doctor", "trace", "strategies", "models"):
        assert f"\n  {verb} " in help_text
        result = starr(verb, "--help")
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"Usage: starr {verb}")


def test_version(starr):
    assert starr("--version").out.startswith("starr 0.")


def test_decoding_verbs_share_their_flags(starr):
    shared = ("--model", "--cache", "--max-tokens", "--block-length", "--temperature", "--top-p", "--seed")
    shared += ("--max-forwards", "--enforce", "--device", "--dtype", "--quiet", "--debug")
    for verb in ("run", "chat", "race"):
        text = starr(verb, "--help").out
        assert all(flag in text for flag in shared)
