"""What every room of the tests may need."""

import os

import pytest

# Golden files and exact comparisons are of float32, on every machine; child processes inherit the variable.
# What is chosen without it: tests/model/test_numbers.py.
os.environ["STARR_DTYPE"] = "float32"


@pytest.fixture
def forget():
    """Registries are afterwards as they were before the test."""
    import starr.decode.stops
    import starr.decode.strategies  # noqa: F401  (they fill the registries)
    from starr.plugins import HOLDERS

    before = [(holder, dict(holder.entries)) for holder in HOLDERS if hasattr(holder, "entries")]
    yield
    for holder, entries in before:
        holder.entries.clear()
        holder.entries.update(entries)
