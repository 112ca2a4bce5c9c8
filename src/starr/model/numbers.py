"""The dtype that a CPU is fastest with, measured once per CPU and version of torch and kept in the user's cache.

``starr.model.trial`` measures in a child process. Some CPUs claim to have AMX and die of its first product; then the
trial runs again without AMX, and ``disable_amx`` keeps it off in later processes.
This module does not import torch: ``import starr`` reads it.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

ISA = "ONEDNN_MAX_CPU_ISA"
NO_AMX = "AVX512_CORE_BF16"
SECONDS = 120  # for the trial, on a very busy machine
WORTH = 1.2  # a dtype must be this many times faster than float32 to be the default
DEADLY = (-4, -6, -7, -8, -11)  # signals: illegal instruction, abort, bus error, arithmetic, segment
ENDS = (0, 3, *DEADLY)  # of a trial that says something about the CPU, as a time-out does not


@dataclass(slots=True)
class Instructions:
    """The limit of oneDNN's instructions that the user set, and that of this process; oneDNN reads it only once."""

    asked: str
    active: str


HERE = Instructions(os.environ.get(ISA, ""), os.environ.get(ISA, ""))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the trial of one dtype."""

    trouble: str = ""  # why it does not work
    even: bool = False  # a row is the same alone and in a batch
    gains: dict[str, float] = field(default_factory=dict)  # times faster than float32, by the width of a layer
    isa: str = ""  # limit of instructions with which this is so

    def gain(self, width: int) -> float:
        """Return the gain for a model of this width: that of the widest layer not above it; 0 where it is not safe."""
        if self.trouble or not self.even or self.isa != HERE.active or not self.gains:
            return 0.0
        widths = sorted(map(int, self.gains))
        return self.gains[str(max([each for each in widths if each <= width] or widths[:1]))]


def describe_cpu() -> str:
    """Read the CPU's name and the instructions that it claims to have."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf8") as lines:
        fields: dict[str, str] = {}
        for line in lines:
            if not line.strip():  # the first core is enough
                break
            name, _, value = line.partition(":")
            fields[name.strip()] = value.strip()
        return " ".join(fields.get(name, "") for name in ("model name", "flags", "CPU part", "Features"))
    return f"{platform.machine()} {platform.processor()}"


def name_record(name: str) -> Path:
    """Name the file that keeps the outcome for this CPU, this torch and the limit that the user set."""
    from hashlib import sha256
    from importlib.metadata import version

    key = sha256(f"{describe_cpu()} {version('torch')} {HERE.asked}".encode()).hexdigest()[:12]
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "starr" / f"{name}-{key}.json"


def read_outcome(name: str) -> Outcome | None:
    """Read the outcome in the user's cache; None if there is none that can be read."""
    with suppress(OSError, ValueError, TypeError, AttributeError, RuntimeError):
        body = json.loads(name_record(name).read_text(encoding="utf8"))
        gains = {str(int(width)): float(gain) for width, gain in body["gains"].items()}
        return Outcome(str(body["trouble"]), bool(body["even"]), gains, str(body["isa"]))
    return None


@cache
def find_outcome(name: str) -> Outcome:
    """Return the outcome for dtype ``name``: the one kept, or that of a trial now."""
    return read_outcome(name) or try_dtype(name)


def try_dtype(name: str) -> Outcome:
    """Try a dtype; where the CPU's own instructions kill the trial, once more without AMX. Keep the outcome."""
    outcome, code = run_trial(name, HERE.asked)
    if code in DEADLY and not HERE.asked:
        again, second = run_trial(name, NO_AMX)
        outcome, code = (again, second) if second == 0 else (outcome, code)
    if code in ENDS:
        with suppress(OSError, RuntimeError):  # nowhere to keep it: the next process tries again
            path = name_record(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(asdict(outcome)) + "\n", encoding="utf8")
            fresh.replace(path)
    return outcome


def run_trial(name: str, isa: str) -> tuple[Outcome, int | None]:
    """Run the trial with oneDNN limited to ``isa`` ("" for no limit); return its outcome and its exit code."""
    import subprocess

    env = {key: value for key, value in os.environ.items() if key != ISA} | ({ISA: isa} if isa else {})
    env["PYTHONPATH"] = os.pathsep.join(part for part in sys.path if part)
    command = [sys.executable, "-m", "starr.model.trial", name]
    try:
        child = subprocess.run(command, env=env, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Outcome(f"the trial failed: {type(error).__name__}"), None
    code = child.returncode
    if code == 0:
        return Outcome(isa=isa, **json.loads(child.stdout)), code
    if code < 0:
        return Outcome(f"the trial process was killed by signal {-code}"), code
    why = "its results are not those of float32" if code == 3 else f"the trial process ended with {code}"
    return Outcome(why), code


def disable_amx() -> None:
    """Keep oneDNN from instructions that this CPU only claims to have. Call it before torch loads."""
    if HERE.active or "amx_tile" not in describe_cpu():
        return
    outcome = read_outcome("bfloat16")
    if outcome is not None and outcome.isa:
        os.environ[ISA] = HERE.active = outcome.isa
