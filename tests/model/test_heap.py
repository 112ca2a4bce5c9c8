import subprocess
import sys

import pytest

FAULTS = """
import resource, sys, torch
from starr.model.heap import keep_freed_memory
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
