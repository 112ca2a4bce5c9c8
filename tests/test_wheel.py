"""The wheel holds the whole package: built, installed in a new environment and run outside the source tree."""

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from starr.model.files.hub import bundled_folder
from tests.packaged import each_packaged

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "starr"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (file,) = folder.glob("starr_dlm-*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """``starr`` of a new environment that has this one's libraries but not its source tree."""
    folder = tmp_path_factory.mktemp("new") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # a path file's own .pth files are not read, so the editable install of the source tree stays out
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    command = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--no-index", "--ignore-installed", wheel], check=True, capture_output=True)
    return folder / "bin" / "starr"


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "ls-files", "src/starr"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = tracked.stdout.split() or [str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.py")]
    assert len(files) > 50
    assert {name.removeprefix("src/") for name in files} <= inside
    assert not {name for name in inside if name.startswith(("tests/", "training/", "benchmarks/"))}


@pytest.mark.parametrize("name", each_packaged())
def test_every_model_is_in_the_wheel(wheel, name):
    folder, inside = bundled_folder(name), set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "README.md",
        "results.json",
    }
    assert wanted <= {file.name for file in folder.iterdir()}
    assert {f"starr/model/{folder.name}/{file.name}" for file in folder.iterdir()} <= inside


def test_the_wheel_runs_outside_the_source_tree(installed, tmp_path):
    command = [installed, "run", "Tom has 3 apples.", "--max-tokens", "8", "--json"]
    child = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    body = json.loads(child.stdout)
    assert (body["model"], body["stats"]["canvas_tokens"]) == ("bundled", 8)
    where = [installed.with_name("python"), "-c", "import starr; print(starr.__file__)"]
    home = subprocess.run(where, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert str(installed.parents[1]) in home
