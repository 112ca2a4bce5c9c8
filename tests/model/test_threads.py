"""Threads on a shared machine: measured, bounded by what others leave, asleep while they wait."""

import multiprocessing
import os
import subprocess
import sys
import time

import pytest
import torch

from starr.errors import InputError
from starr.model import threads
from starr.model.threads import MACHINE, Machine, count_cores, fix_threads, measure_useful_threads, read_clocks
from tests.tiny import tiny_model


@pytest.fixture(autouse=True)
def as_before():
    before, fixed = torch.get_num_threads(), MACHINE.fixed
    MACHINE.fixed = None  # other tests of the process may have fixed it
    yield
    MACHINE.fixed = fixed
    torch.set_num_threads(before)


def machine(most, free):
    made = Machine()
    made.most, made.free, made.measure = most, free, lambda: None
    return made


def test_never_more_than_free_cores_nor_than_a_forward_can_use():
    assert machine(8, 8.0).threads() == 8
    assert machine(8, 8.0).threads(useful=2) == 2
    assert machine(8, 5.9).threads() == 6
    assert machine(8, 5.5).threads() == 5
    assert machine(8, -1.0).threads() == 1
    shared = machine(8, 8.0)
    shared.at_work = 3
    assert shared.threads() == 2
    shared.fixed = 7
    assert shared.threads(useful=1) == 7


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_others_are_seen_and_our_own_work_is_not():
    """One busy loop in another process takes what a busy loop in ours does not."""
    if read_clocks() == (0.0, 0.0):
        pytest.skip("no /proc/stat here")
    seen = Machine()
    spin(0.5)
    seen.measure()
    alone = seen.free
    other = multiprocessing.get_context("fork").Process(target=spin, args=(20.0,))
    other.start()
    time.sleep(0.2)
    seen.measure()
    time.sleep(1.0)
    seen.measure()
    beside = seen.free
    other.kill()
    other.join()
    assert beside <= count_cores() - 0.2
    assert alone <= count_cores()


def test_a_small_model_gets_few_threads_and_a_long_forward_all(monkeypatch):
    monkeypatch.setattr(MACHINE, "most", 4)
    monkeypatch.setattr(MACHINE, "free", 4.0)
    monkeypatch.setattr(MACHINE, "measure", lambda: None)
    net = tiny_model().net
    for times, expected in [
        ({1: 0.01, 2: 0.0099, 4: 0.02}, 1),
        ({1: 0.01, 2: 0.006, 4: 0.0059}, 2),
        ({1: 0.01, 2: 0.006, 4: 0.004}, 4),
        ({1: 9.0}, 4),
    ]:
        monkeypatch.setattr(threads, "time_forward", lambda _, count, times=times: times[count])
        assert measure_useful_threads(net) == expected


def test_the_measurement_is_a_real_forward_and_leaves_no_trace():
    before = torch.get_num_threads()
    assert 1 <= measure_useful_threads(tiny_model().net) <= max(1, MACHINE.most)
    assert torch.get_num_threads() == before


def test_threads_can_be_fixed():
    fix_threads(1)
    MACHINE.use(useful=64)
    assert torch.get_num_threads() == 1
    for wrong in (0, -1, 10**9):
        with pytest.raises(InputError, match="threads must be from 1"):
            fix_threads(wrong)


def test_waiting_threads_sleep_unless_the_user_says_otherwise():
    program = "import starr, os; print(os.environ['OMP_WAIT_POLICY'])"
    bare = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    for env, expected in ((bare, "PASSIVE"), (bare | {"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        told = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        assert told.stdout.strip() == expected
