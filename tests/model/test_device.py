import subprocess
import sys

import pytest
import torch

from starr.errors import InputError
from starr.model.device import choose_device, choose_dtype

CPU = torch.device("cpu")


def test_defaults(monkeypatch):
    assert choose_device("cpu") == CPU
    assert choose_dtype(None, CPU) == torch.float32  # that of STARR_DTYPE, see tests/conftest.py
    assert choose_dtype("float32", CPU) == torch.float32
    monkeypatch.delenv("STARR_DTYPE")
    assert choose_dtype(None, torch.device("cuda")) == torch.bfloat16
    assert choose_dtype(None, torch.device("mps")) == torch.float32
    assert choose_device(None).type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(
    ("name", "hint"), [("cpuu", "Did you mean 'cpu'?"), ("tpu", "cpu"), ("cuda:x", "cuda"), ("", "Known: cpu")]
)
def test_unknown_device(name, hint):
    with pytest.raises(InputError) as caught:
        choose_device(name)
    assert "Unknown device" in str(caught.value)
    assert hint in str(caught.value)
    assert caught.value.param == "device"


def test_absent_devices_are_one_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    for name in ("cuda", "cuda:0", "mps"):
        with pytest.raises(InputError, match=f"Device '{name}' is not available here. Use cpu."):
            choose_device(name)
    with pytest.raises(InputError, match="The last one is cpu:0"):
        choose_device("cpu:3")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InputError, match="The last one is cuda:1"):
        choose_device("cuda:2")


@pytest.mark.parametrize(("name", "near"), [("bf16", "bfloat16"), ("flaot32", "float32")])
def test_unknown_dtype(name, near):
    with pytest.raises(InputError, match=f"{name}.*{near}"):
        choose_dtype(name, CPU)


FAULTS = """
import resource, sys, torch
from starr.model.device import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    sys.exit("none")
torch.set_num_threads(1)
x = torch.ones(1_000_000)


def forward():
    # All ten live at once and are freed together, which is more than glibc's own growing limits ever keep: with fewer,
    # it keeps the blocks in some processes and not in others.
    [x + number for number in range(10)]


for _ in range(10):
    forward()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    forward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, timeout=120)
    if done.stderr.strip() == "none":
        pytest.skip("this C library has no mallopt")
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted on Linux")
def test_freed_tensors_are_not_faulted_in_again():
    assert faults("kept") < faults("given back") / 4
