"""The package's models, for tests that hold for each of them; one that is not in this tree is skipped."""

import pytest

from starr.model.files.hub import BUNDLED_NAMES, bundled_folder


def each_packaged(*names):
    """A parameter for each of the names, or for every model of the package."""
    return [pytest.param(name, marks=unless_here(name)) for name in names or BUNDLED_NAMES]


def unless_here(name):
    absent = not (bundled_folder(name) / "config.json").exists()
    return pytest.mark.skipif(absent, reason=f"{name} is not in the package")
