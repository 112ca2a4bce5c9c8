"""``starr doctor``: what this machine has, and what to do about each problem."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from starr.cli.flags import Common, Json
from starr.cli.report import dump
from starr.cli.verb import verb
from starr.errors import counted
from starr.optional import EXTRAS

PACKAGES = ("torch", "numpy", "safetensors", "tokenizers", "huggingface_hub", "jinja2", "typer", "rich")
MARKS = {"ok": "ok  ", "note": "note", "problem": "BAD "}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; ``advice`` says what to do about it."""

    state: str  # ok | note | problem
    what: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Common):
    """The flags of ``starr doctor``."""

    json: Json = False


def add(app: typer.Typer) -> None:
    """Add ``starr doctor``."""
    verb(app, "doctor", DoctorOptions, doctor)


def doctor(options: DoctorOptions) -> None:
    """Look for problems and say what to do.

    Versions, devices, number formats, the bundled model and the hub; exit 1 if decoding cannot work.
    """
    findings = [*versions(), *extras(), *devices(), *formats(), *models(), *disk()]
    if options.json:
        print(dump([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            print(f"{MARKS[finding.state]} {finding.what}" + (f"\n     → {finding.advice}" if finding.advice else ""))
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(1)


def versions() -> Iterator[Finding]:
    """Versions of Python, of this package and of the libraries it needs."""
    from importlib.metadata import PackageNotFoundError, version

    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Finding("ok", f"starr {version('starr-dlm')}")
    yield Finding("ok", python)
    for package in PACKAGES:
        try:
            yield Finding("ok", f"{package} {version(package)}")
        except PackageNotFoundError:
            yield Finding("problem", f"{package} is missing", f"pip install {package}")


def extras() -> Iterator[Finding]:
    """Which extras are installed."""
    for extra in EXTRAS:
        if extra.absent:
            what = f"extra [{extra.name}] for {extra.purpose}: {', '.join(extra.absent)} missing"
            yield Finding("note", what, f"pip install 'starr-dlm[{extra.name}]' if you want it.")
        else:
            yield Finding("ok", f"extra [{extra.name}] for {extra.purpose}")


def devices() -> Iterator[Finding]:
    """Cores, threads and accelerators."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = torch.get_num_threads()
    advice = f"Set OMP_NUM_THREADS={cores} or less: too many threads slow each other down." if threads > cores else ""
    yield Finding("note" if advice else "ok", f"cpu: {counted(cores, 'core')}, {counted(threads, 'thread')}", advice)
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        yield Finding("ok", f"cuda:{index}: {card.name}, {card.total_memory / 2**30:.0f} GiB")
    if torch.backends.mps.is_available():
        yield Finding("ok", "mps: available with --device mps")
    if not torch.cuda.is_available():
        yield Finding("note", "no CUDA device", "The bundled model is made for a CPU; models of 7 B will be slow.")


def formats() -> Iterator[Finding]:
    """Half precision on the CPU, tried in a child process, because on some machines it kills Python."""
    from starr.model.numbers import ISA, NO_AMX, find_outcome

    yield Finding("ok", "float32 on cpu")
    for name in ("bfloat16", "float16"):
        found = find_outcome(name)
        if found.trouble:
            advice = f"Keep float32, or set {ISA}={NO_AMX} before starting Python and try again."
            yield Finding("note", f"{name} on cpu: {found.trouble}", advice)
            continue
        speed = ", ".join(f"{gain:.1f} x as fast as float32 at width {width}" for width, gain in found.gains.items())
        limit = f" with {found.isa}" if found.isa else ""
        alike = "" if found.even else "; a row gives different numbers alone than in a batch"
        yield Finding("ok", f"{name} on cpu{limit}: works, {speed}{alike}")


def models() -> Iterator[Finding]:
    """Whether the bundled model loads and decodes."""
    import starr
    from starr.errors import StarrError

    try:
        model = starr.load()
        generation = starr.generate(model, "1 + 1", max_tokens=8)
        dtype, forwards = str(model.dtype).removeprefix("torch."), counted(generation.stats.forwards, "forward")
        yield Finding("ok", f"bundled model: loads and decodes in {dtype} ({forwards})")
    except StarrError as error:
        yield Finding("problem", f"bundled model: {error.message}", error.hint or "Install starr-dlm again.")
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        yield Finding("note", "HF_HUB_OFFLINE=1: only models in the hub's cache can be named by id")


def disk() -> Iterator[Finding]:
    """Whether the hub's cache has room for a large model."""
    from huggingface_hub.constants import HF_HUB_CACHE

    place = Path(HF_HUB_CACHE)
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 2**30
    advice = "An 8 B model needs 16 GiB: free space, or set HF_HOME to another disk." if free < 20 else ""
    yield Finding("note" if advice else "ok", f"hub cache {HF_HUB_CACHE}: {free:.0f} GiB free", advice)
