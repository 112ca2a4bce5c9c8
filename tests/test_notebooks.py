"""The notebooks of docs/notebooks run from top to bottom in a fresh kernel."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
WANTED = {"first_steps": "#### 15", "compare_strategies": "tokens_per_forward", "write_your_own": "#### 39"}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory, monkeypatch_module):
    """A kernel specification of this very interpreter, whatever the machine has installed."""
    home = tmp_path_factory.mktemp("jupyter")
    monkeypatch_module.setenv("JUPYTER_DATA_DIR", str(home))
    monkeypatch_module.setenv("IPYTHONDIR", str(home / "ipython"))
    return home


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.mark.parametrize("name", WANTED)
def test_it_runs(name, kernels):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    shown = json.dumps(outputs)
    assert "<iframe" in shown
    assert WANTED[name] in shown


def test_they_are_stored_without_output():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(WANTED)
    for path in FOLDER.glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        assert all(not cell.get("outputs") for cell in cells)
