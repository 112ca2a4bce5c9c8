import subprocess
import sys

import pytest

FAULTS = """
import resource, sys, torch
from starr.model.memory import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    sys.exit("none")
torch.set_num_threads(1)
x = torch.ones(1_000_000)
for _ in range(3):
    y = (x + 1) * (x + 2) + (x + 3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    y = (x + 1) * (x + 2) + (x + 3)
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
