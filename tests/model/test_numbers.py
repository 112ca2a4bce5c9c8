"""Which dtype a CPU gets: the trial in a child process, what is kept of it, and what is said."""

import json
import os
import re
import subprocess
import sys
import warnings

import pytest
import torch

import starr
from starr.model import numbers
from starr.model.device import choose_dtype, explain_dtype
from starr.model.numbers import HERE, ISA, NO_AMX, Outcome, disable_amx, find_outcome, name_record, try_dtype

CPU = torch.device("cpu")
FAST = '{"even": true, "gains": {"256": 1.5, "1024": 3.0}}'


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine that nothing is known of, and nothing asked for."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("STARR_DTYPE")
    monkeypatch.delenv(ISA, raising=False)
    monkeypatch.setattr(HERE, "asked", "")
    monkeypatch.setattr(HERE, "active", "")
    find_outcome.cache_clear()
    yield
    find_outcome.cache_clear()


@pytest.fixture
def child(monkeypatch, tmp_path):
    """The trial replaced by some shell: a real process, with the real environment."""

    def put(code: str) -> None:
        fake = tmp_path / "python"
        fake.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\n{code}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(fake))

    return put


def test_the_real_trial_is_made_once_and_kept(tmp_path):
    found = try_dtype("bfloat16")
    if found.trouble:
        pytest.skip(found.trouble)
    assert set(found.gains) == {"256", "1024"}
    assert all(0.05 < gain < 50 for gain in found.gains.values())
    assert name_record("bfloat16").parent == tmp_path / "starr"
    sys_executable, sys.executable = sys.executable, "/nowhere/python"
    try:
        assert find_outcome("bfloat16") == found
    finally:
        sys.executable = sys_executable


def test_the_default_is_the_fastest_by_the_model_s_width(child):
    child(f"echo '{FAST}'")
    assert choose_dtype(None, CPU, 4096) == choose_dtype(None, CPU, 64) == torch.bfloat16
    assert explain_dtype(torch.bfloat16, 4096).startswith("bfloat16: 3.0 x as fast as float32 on this CPU")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"even": true, "gains": {"256": 0.7, "1024": 1.1}}', "bfloat16 is 1.1 x as fast on this CPU"),
        ('{"even": false, "gains": {"256": 3.0, "1024": 3.0}}', "a row gives different numbers alone than in a batch"),
    ],
)
def test_float32_where_half_precision_is_slow_or_uneven(child, line, reason):
    child(f"echo '{line}'")
    assert choose_dtype(None, CPU, 4096) == torch.float32
    assert reason in explain_dtype(torch.float32, 4096)
    assert choose_dtype("bfloat16", CPU) == torch.bfloat16  # for who asks for it


def test_the_variable_stands_for_the_name(child, monkeypatch, tmp_path):
    child(f"echo '{FAST}'")
    monkeypatch.setenv("STARR_DTYPE", "float32")
    assert choose_dtype(None, CPU, 4096) == torch.float32
    assert not (tmp_path / "runs").exists()
    monkeypatch.setenv("STARR_DTYPE", "flaot32")
    with pytest.raises(starr.errors.InputError, match="Did you mean 'float32'"):
        choose_dtype(None, CPU, 4096)


def test_a_child_that_dies_means_float32_and_one_warning(child, tmp_path):
    child("kill -ILL $$")
    assert choose_dtype(None, CPU, 4096) == torch.float32
    assert "killed by signal 4" in explain_dtype(torch.float32, 4096)
    with pytest.warns(UserWarning, match="killed by signal 4.*using float32.*ONEDNN_MAX_CPU_ISA") as caught:
        assert choose_dtype("bfloat16", CPU) == torch.float32
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert len((tmp_path / "runs").read_text().split()) == 2  # with AMX and without
    find_outcome.cache_clear()
    assert find_outcome("bfloat16").trouble  # kept
    assert len((tmp_path / "runs").read_text().split()) == 2


def test_a_cpu_that_only_claims_amx_works_without_it_from_the_next_start_on(child, monkeypatch):
    child(f"[ \"${ISA}\" = {NO_AMX} ] || kill -ILL $$\necho '{FAST}'")
    assert choose_dtype(None, CPU, 4096) == torch.float32  # oneDNN has read the variable: too late for this process
    assert "from the next start on" in explain_dtype(torch.float32, 4096)
    with pytest.warns(UserWarning, match="only without AMX"):
        assert choose_dtype("bfloat16", CPU) == torch.float32
    monkeypatch.setattr(numbers, "describe_cpu", lambda: "a name avx512_bf16 amx_tile")
    keep = name_record("bfloat16")  # of the CPU with that name
    keep.write_text(json.dumps({"trouble": "", "even": True, "gains": {"256": 2.0}, "isa": NO_AMX}))
    find_outcome.cache_clear()
    monkeypatch.setenv(ISA, "")
    disable_amx()  # as ``import starr`` does before torch
    assert os.environ[ISA] == HERE.active == NO_AMX
    assert choose_dtype(None, CPU, 4096) == torch.bfloat16
    assert choose_dtype("bfloat16", CPU) == torch.bfloat16


@pytest.mark.parametrize("code", ["exit 1", "kill -KILL $$", "kill -TERM $$"])
def test_a_trial_that_says_nothing_of_the_cpu_is_not_kept(child, code):
    child(code)
    with pytest.warns(UserWarning, match="the trial process"):
        assert choose_dtype("float16", CPU) == torch.float32
    assert not name_record("float16").exists()


def test_a_trial_that_takes_too_long_or_cannot_start_is_not_kept(child, monkeypatch):
    monkeypatch.setattr(numbers, "SECONDS", 0.1)
    child("exec sleep 5")
    assert "TimeoutExpired" in find_outcome("bfloat16").trouble
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "FileNotFoundError" in find_outcome("float16").trouble
    assert not name_record("bfloat16").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"gains": 3}', '{"gains": {"a": 1}}', "\xff", "[" * 5000])
def test_a_damaged_record_is_made_anew(child, text):
    child(f"echo '{FAST}'")
    name_record("bfloat16").parent.mkdir(parents=True)
    name_record("bfloat16").write_text(text, encoding="latin1")
    assert find_outcome("bfloat16") == Outcome(even=True, gains={"256": 1.5, "1024": 3.0})
    assert json.loads(name_record("bfloat16").read_text())["even"] is True


def test_a_cache_that_cannot_be_written_is_no_failure(child, monkeypatch, tmp_path):
    child(f"echo '{FAST}'")
    (tmp_path / "starr").write_text("a file where the folder should be")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_dtype(None, CPU, 4096) == torch.bfloat16


def test_the_record_is_one_per_cpu_torch_and_limit(monkeypatch):
    names = {name_record("bfloat16")}
    monkeypatch.setattr(numbers, "describe_cpu", lambda: "another")
    names.add(name_record("bfloat16"))
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.9")
    names.add(name_record("bfloat16"))
    monkeypatch.setattr(HERE, "asked", "AVX2")
    names.add(name_record("bfloat16"))
    assert len(names) == 4


def test_the_command_line_says_once_what_was_chosen():
    """Real runs on a machine that nothing is known of: the first tries and tells, those after it only with --debug."""
    command = [sys.executable, "-m", "starr", "run", "Tom has 2 apples.", "--max-tokens", "4"]
    first, second, debugged, asked = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=True).stderr
        for more in ((), (), ("--debug",), ("--debug", "--dtype", "float32"))
    )
    told = re.compile(r"^(bfloat16|float32): .+\.$", re.MULTILINE)
    assert told.search(first)
    assert told.search(debugged)[0] == told.search(first)[0]
    assert not told.search(second)
    assert not told.search(asked)


def test_a_fast_machine_is_told_the_gain_and_the_way_back():
    name_record("bfloat16").parent.mkdir(parents=True)
    name_record("bfloat16").write_text(json.dumps({"trouble": "", "isa": ""} | json.loads(FAST)))
    assert explain_dtype(torch.bfloat16, 256) == (
        "bfloat16: 1.5 x as fast as float32 on this CPU (or choose --dtype float32)."
    )
