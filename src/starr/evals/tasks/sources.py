"""Where a benchmark's rows come from: ``--data``, then ``STARR_DATA``, then the hub."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starr.errors import InputError, LoadError
from starr.model.files.hub import quiet_hub

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """One split of a benchmark: its file below ``STARR_DATA`` and its file in a dataset repository of the hub."""

    task: str
    file: str
    repo: str
    hub_file: str

    def rows(self, data: Path | None = None) -> list[Row]:
        """The rows, from a file or folder given by the user, the environment's folder, or the hub."""
        for path in self.candidates(data):
            if path.is_file():
                return read_rows(path)
        if data is not None and not data.exists():
            raise InputError(f"--data {data} does not exist.", hint="Give a file or a folder.", param="data")
        return self.from_hub()

    def candidates(self, data: Path | None) -> list[Path]:
        """Places on this disk, best first. A file stands for the split of its own name, its folder for the others."""
        found = []
        if data is not None and data.is_dir():
            found += [data / self.file, data / self.task / self.file]
        elif data is not None:
            found.append(data if data.name == self.file or self.main else data.parent / self.file)
        if folder := os.environ.get("STARR_DATA"):
            found.append(Path(folder) / self.task / self.file)
        return found

    @property
    def main(self) -> bool:
        """Whether this is the split that is evaluated, so that a file of any name stands for it."""
        return "train" not in self.hub_file and "prompt" not in self.hub_file

    def from_hub(self) -> list[Row]:
        """Rows from the hub, or from its cache without a network."""
        from huggingface_hub import hf_hub_download

        try:
            with quiet_hub() as only_cache:
                path = hf_hub_download(self.repo, self.hub_file, repo_type="dataset", local_files_only=only_cache)
            return read_rows(Path(path))
        except (OSError, ValueError):
            raise LoadError(
                f"No data for {self.task}: {self.repo} is neither on this disk nor available from the hub.",
                hint=f"Give --data FILE, or set STARR_DATA to a folder with {self.task}/{self.file}.",
                param="data",
            ) from None


def read_rows(path: Path) -> list[Row]:
    """Rows of a .jsonl, .jsonl.gz, .json or .parquet file."""
    try:
        if path.suffix == ".parquet":
            return read_parquet(path)
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf8") as file:
            text = file.read()
        if path.suffix == ".json":
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError, EOFError) as error:
        raise LoadError(f"{path} cannot be read as rows of JSON ({type(error).__name__}).", param="data") from None


def read_parquet(path: Path) -> list[Row]:
    """Rows of a parquet file."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise LoadError(f"{path} needs pyarrow.", hint="Install 'starr-dlm[eval]'.", param="data") from None
    rows: list[Row] = parquet.read_table(path).to_pylist()
    return rows


def need(row: Row, keys: tuple[str, ...], task: str) -> None:
    """Raise unless a row has the fields of its benchmark."""
    missing = [key for key in keys if key not in row]
    if missing:
        raise LoadError(f"A row of {task} lacks {', '.join(missing)}.", hint="Is it another file?", param="data")
