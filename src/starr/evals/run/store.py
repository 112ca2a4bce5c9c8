"""Samples on disk: one JSON line each, written when it is done, so that a killed evaluation loses none of them.

One process at a time writes to a folder: it holds a lock on ``samples.jsonl``, which ends with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any

from starr.errors import InputError, LoadError
from starr.model.files.output import write_text


@dataclass(frozen=True, slots=True)
class Sample:
    """One item decoded by one run. ``seconds`` is the row's latency, ``elapsed`` its share of the engine's time.

    ``both`` is what comparisons go by: right and, where the task says what that is (not None), well formed.
    """

    run: str
    strategy: str
    cache: str
    index: int
    id: str
    kind: str
    right: bool
    formed: bool | None
    both: bool
    scores: Mapping[str, bool]
    answer: str | None
    gold: str
    text: str
    finish_reason: str
    prompt_tokens: int
    forwards: int
    full_forwards: int
    positions: int
    tokens: int  # up to the first end-of-text
    canvas_tokens: int  # end-of-text and what follows it counted too
    commits: int
    revocations: int
    seconds: float
    elapsed: float


class Store:
    """A run folder: ``settings.json`` and ``samples.jsonl``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "samples.jsonl"
        self.samples: dict[tuple[str, int], Sample] = {}
        self.runs: dict[str, dict[int, Sample]] = {}  # the same, by run and place
        self.file: IO[str] | None = None

    def open(self, settings: Mapping[str, Any], *, resume: bool) -> dict[str, Any] | None:
        """Begin or continue; returns the stored settings when there were samples before."""
        before = self.before()
        if not resume and self.begun:
            raise InputError(
                f"{self.folder} already has samples.", hint="Add --resume or choose another --out.", param="out"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = lock(self.path)
        if settings != before:
            write_text(self.folder / "settings.json", json.dumps(settings, indent=1))
        for sample in read_samples(self.path):
            self.keep(sample)
        self.cut_tail()
        return before

    def close(self) -> None:
        """Let another process write."""
        if self.file is not None:
            self.file.close()
            self.file = None

    @property
    def begun(self) -> bool:
        """Whether the folder holds a whole sample; one whose run ended before the first is as good as new."""
        if not self.path.exists():
            return False
        with self.path.open("rb") as file:
            return file.readline().endswith(b"\n")

    def before(self) -> dict[str, Any] | None:
        """The settings of the samples that are there; None where there are none."""
        return self.settings() if self.begun else None

    def settings(self) -> dict[str, Any] | None:
        """The stored settings; None in a new folder."""
        try:
            found: dict[str, Any] = json.loads((self.folder / "settings.json").read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            raise LoadError(f"{self.folder / 'settings.json'} is not JSON.", param="out") from None
        return found

    def cut_tail(self) -> None:
        """Drop a last line that a kill cut short, so that the next one starts on its own line."""
        if self.path.exists():
            whole = self.path.read_bytes()
            end = whole.rfind(b"\n") + 1
            if end < len(whole):
                os.truncate(self.path, end)

    def add(self, sample: Sample) -> None:
        """Append and flush: from here on a kill cannot lose it."""
        assert self.file is not None, "open the store first"
        self.file.write(json.dumps(asdict(sample), ensure_ascii=False) + "\n")
        self.file.flush()
        self.keep(sample)

    def keep(self, sample: Sample) -> None:
        """Remember a sample that is on disk."""
        self.samples[sample.run, sample.index] = sample
        self.runs.setdefault(sample.run, {})[sample.index] = sample

    def has(self, run: str, index: int) -> bool:
        """Whether a run has decoded an item."""
        return (run, index) in self.samples

    def of(self, run: str) -> list[Sample]:
        """The samples of one run, by place."""
        return sorted(self.runs.get(run, {}).values(), key=lambda s: s.index)


def lock(path: Path) -> IO[str]:
    """The file, open to append to, and locked against other processes; where the system has no locks, only open."""
    file = path.open("a", encoding="utf8")
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            hint = "Wait for it, or choose another --out."
            raise InputError(f"Another process is writing to {path.parent}.", hint=hint, param="out") from None
    return file


def read_samples(path: Path) -> Iterable[Sample]:
    """Whole lines of a samples file; a cut last line is left out, anything else that is broken is named."""
    if not path.exists():
        return
    names = {f.name for f in fields(Sample)}
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            row = json.loads(line)
            yield Sample(**{name: row[name] for name in names})
        except (ValueError, KeyError, TypeError):
            raise LoadError(
                f"{path} line {number} is not a sample.", hint="Remove the line to continue.", param="out"
            ) from None


def merge(folders: list[Path], out: Path) -> Store:
    """Join the samples of shards or of separate runs with the same settings into a new folder."""
    if not folders:
        raise InputError("merge needs at least one run folder.", param="folders")
    joined = Store(out)
    first: dict[str, Any] | None = None
    for folder in folders:
        store = Store(folder)
        settings = store.settings()
        if settings is None:
            raise InputError(f"{folder} is not a run folder: it has no settings.json.", param="folders")
        if first is None:
            first = settings
            joined.open(settings, resume=False)
        differing = [k for k in first if k != "runs" and settings.get(k) != first[k]]
        if differing:
            raise InputError(f"{folder} differs in {', '.join(differing)} from {folders[0]}.", param="folders")
        for sample in read_samples(store.path):
            if not joined.has(sample.run, sample.index):
                joined.add(sample)
    return joined
