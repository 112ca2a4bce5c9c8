"""Imports point one way. Read off the syntax tree, so that imports inside functions and for types count too."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
OUTER = ("evals", "server", "viewer", "cli", "cluster", "integrations")
STEPS = ("canvas", "forward", "propose", "observe", "decide", "enforce", "batch", "plan", "noise")
STEPS_PROTOCOL = {"starr.strategy.base", "starr.strategy.registry"}
FILES = sorted(SOURCE.rglob("*.py"))


def module_of(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file) for file in FILES}


def imports(file: Path, *, top_level: bool = False) -> Iterator[str]:
    """Full names of what a file imports; ``from a import b`` is a.b where that is a module, else a."""
    tree = ast.parse(file.read_text(encoding="utf8"))
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else str(node.module)


def own(file: Path) -> set[str]:
    """The project's modules that a file imports."""
    return {name for name in imports(file) if name.split(".")[0] == "starr"}


def layer(module: str) -> str:
    """``evals`` of ``starr.evals.runner``; "" of the package itself."""
    return [*module.split("."), ""][1]


def files_of(*layers: str) -> list:
    return [pytest.param(file, id=module_of(file)) for file in FILES if layer(module_of(file)) in layers]


CORE = sorted({layer(module) for module in MODULES} - {*OUTER, ""})


def test_there_is_something_to_check():
    assert len(FILES) > 50
    assert {"engine", "strategy", "model", "api"} <= set(CORE)


@pytest.mark.parametrize("file", files_of("strategy", "confidence"))
def test_a_strategy_knows_only_torch_and_confidence(file):
    ours = {name for name in own(file) if layer(name) not in ("strategy", "confidence", "errors")}
    others = {name.split(".")[0] for name in imports(file)} - {"starr", "torch"} - set(sys.stdlib_module_names)
    assert not ours
    assert not others


@pytest.mark.parametrize("file", files_of(*(set(CORE) - {"strategy", "api", "catalogue"})))
def test_the_engine_knows_the_strategy_protocol_and_no_member(file):
    assert {name for name in own(file) if layer(name) == "strategy"} <= STEPS_PROTOCOL


@pytest.mark.parametrize("file", files_of(*CORE))
def test_the_core_does_not_know_what_is_built_on_it(file):
    assert not {name for name in own(file) if layer(name) in OUTER}


@pytest.mark.parametrize("file", files_of(*OUTER))
def test_what_is_built_on_the_core_does_not_reach_into_its_steps(file):
    assert not {name for name in own(file) if layer(name) in STEPS}


@pytest.mark.parametrize("file", files_of(*(set(OUTER) - {"cli"})))
def test_nothing_imports_the_command_line(file):
    assert not {name for name in own(file) if layer(name) == "cli"}


@pytest.mark.parametrize("file", files_of("", "cli", "errors"))
def test_start_up_imports_only_what_is_light(file):
    names = set(imports(file, top_level=True))
    outside = {name.split(".")[0] for name in names} - {"starr", "typer"} - set(sys.stdlib_module_names)
    inside = {name for name in names if layer(name) not in ("", "cli", "errors") and name.startswith("starr")}
    assert not outside
    assert not inside
