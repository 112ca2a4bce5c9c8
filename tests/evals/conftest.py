"""Benchmark files for the tests: the environment's folder, or ``shared/data`` beside the repository."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def benchmark_data(monkeypatch):
    """Set STARR_DATA for one test; skip where no benchmark files are."""
    folder = Path(os.environ.get("STARR_DATA", BESIDE))
    if not (folder / "gsm8k" / "test.jsonl").is_file():
        pytest.skip("no benchmark files: set STARR_DATA")
    monkeypatch.setenv("STARR_DATA", str(folder))
    return folder
