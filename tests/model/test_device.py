import warnings

import pytest
import torch

from starr.errors import InputError
from starr.model import device
from starr.model.device import choose_device, choose_dtype, probe

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def forget():
    probe.cache_clear()
    yield
    probe.cache_clear()


def test_defaults():
    assert choose_device("cpu") == CPU
    assert choose_dtype(None, CPU) == torch.float32
    assert choose_dtype("float32", CPU) == torch.float32
    assert choose_dtype(None, torch.device("cuda")) == torch.bfloat16
    assert choose_device(None).type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(
    ("name", "hint"), [("cpuu", "Did you mean 'cpu'?"), ("tpu", "'cpu'"), ("cuda:x", "'cuda'"), ("", "Known: cpu")]
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
    with pytest.raises(InputError, match=f"Unknown dtype '{name}'. Did you mean '{near}'?"):
        choose_dtype(name, CPU)


def test_a_child_that_dies_means_float32_and_one_warning(monkeypatch):
    monkeypatch.setattr(device, "PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    with pytest.warns(UserWarning, match="died of signal 4.*using float32.*ONEDNN_MAX_CPU_ISA") as caught:
        assert choose_dtype("bfloat16", CPU) == torch.float32
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)


def test_a_child_that_fails_or_cannot_start_means_float32(monkeypatch):
    monkeypatch.setattr(device, "PROBE", "raise SystemExit(3)")
    with pytest.warns(UserWarning, match="ended with 3"):
        assert choose_dtype("float16", CPU) == torch.float32
    probe.cache_clear()
    monkeypatch.setattr(device.sys, "executable", "/nowhere/python")
    with pytest.warns(UserWarning, match="FileNotFoundError"):
        assert choose_dtype("float16", CPU) == torch.float32


def test_a_healthy_child_means_the_dtype_asked_for(monkeypatch):
    monkeypatch.setattr(device, "PROBE", "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_dtype("bfloat16", CPU) == torch.bfloat16


def test_the_child_sees_the_instruction_set_this_process_started_with(monkeypatch):
    """oneDNN reads the variable once: what is set later must not make the child's answer differ from ours."""
    monkeypatch.setattr(device, "PROBE", f"import os; raise SystemExit(os.environ.get({device.ISA!r}) is not None)")
    monkeypatch.setattr(device, "ISA_AT_IMPORT", None)
    monkeypatch.setenv(device.ISA, "AVX2")
    assert probe("bfloat16") == ""
    probe.cache_clear()
    monkeypatch.setattr(device, "ISA_AT_IMPORT", "AVX512_CORE_BF16")
    assert probe("bfloat16") == "the trial process ended with 1"
