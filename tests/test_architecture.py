"""Imports point one way. Read off the syntax tree, so that imports inside functions and for types count too."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
OUTER = ("evals", "fit", "research", "server", "viewer", "cli", "cluster", "integrations")
DOORS = (
    "choose",
    "engine",
    "request",
    "result",
    "trace",
    "text",
    "strategies",
    "caches",
    "stops",
    "prompts",
    "confidence",
    "catalogue",
    "ranking",
    "view",
)
LIGHT = ("", "cli", "errors", "named", "optional", "options", "plugins")  # imported before the verb is known
OPEN = ("errors", "named", "plugins")  # what a strategy may import besides the view
LABORATORY = ("evals", "fit", "research")  # each imports only those before it
BEFORE_TORCH = "starr.model.numbers"  # read by ``import starr``, to limit instructions before torch loads
STEPS_PROTOCOL = {"starr.decode.strategies.base"}
# The picture, from what a strategy knows to the loop that drives it: a module imports only what stands before it.
PICTURE = [
    "noise",
    "confidence",
    "ranking",
    "trace",
    "text",
    "result",
    "view",
    "strategies",
    "caches",
    "stops",
    "prompts",
    "request",
    "canvas",
    "blocks",
    "extras.base",
    "settings",
    "advance",
    "query",
    "forward",
    "propose",
    "decide",
    "enforce",
    "apply",
    "extras",
    "choose",
    "rows",
    "batch",
    "rescue",
    "engine",
]
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
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield from dynamic(node)


def dynamic(call: ast.Call) -> Iterator[str]:
    """The module that an import by text names, as far as the text is written there."""
    for part in ast.walk(call.args[0]):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.strip("."):
            yield part.value.strip(".")


def own(file: Path) -> set[str]:
    """The project's modules that a file imports."""
    return {name for name in imports(file) if name.split(".")[0] == "starr"}


def layer(module: str) -> str:
    """``evals`` of ``starr.evals.run.runner``; "" of the package itself."""
    return [*module.split("."), ""][1]


def files_of(*layers: str) -> list:
    return [pytest.param(file, id=module_of(file)) for file in FILES if layer(module_of(file)) in layers]


CORE = sorted({layer(module) for module in MODULES} - {*OUTER, "", "__main__"})  # __main__ is the command line


def room(module: str) -> str:
    """``strategies`` of ``starr.decode.strategies.eb``; "" of anything outside ``decode``."""
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "decode" else ""


def files_in(*rooms: str) -> list:
    return [pytest.param(file, id=module_of(file)) for file in FILES if room(module_of(file)) in rooms]


ROOMS = sorted({room(module) for module in MODULES} - {""})


def test_there_is_something_to_check():
    assert len(FILES) > 50
    assert {"decode", "model", "api"} <= set(CORE)
    assert {"engine", "strategies", "caches"} <= set(ROOMS)


def test_the_top_is_a_door_of_at_most_eight_modules():
    assert len(list((SOURCE / "starr").glob("*.py"))) <= 8


@pytest.mark.parametrize("file", files_in("strategies", "confidence"))
def test_a_strategy_knows_only_torch_and_the_view(file):
    allowed = {"strategies", "confidence", "ranking", "view"}
    ours = {name for name in own(file) if layer(name) not in OPEN and room(name) not in allowed}
    others = {name.split(".")[0] for name in imports(file)} - {"starr", "torch"} - set(sys.stdlib_module_names)
    assert not ours
    assert not others


def place_of(module: str) -> str:
    """The entry of PICTURE that a module of ``decode`` belongs to."""
    inner = module.removeprefix("starr.decode.")
    return inner if inner in PICTURE else inner.split(".")[0]


def test_the_picture_has_every_module_of_the_loop():
    assert {place_of(module) for module in MODULES if room(module)} == {*PICTURE, "catalogue"}


@pytest.mark.parametrize("file", files_in(*(set(ROOMS) - {"catalogue"})))
def test_imports_inside_decode_follow_the_picture(file):
    """What runs when a module is imported; types may be named in any direction."""
    own_place = PICTURE.index(place_of(module_of(file)))
    used = {name for name in imports(file, top_level=True) if room(name)}
    assert not {name for name in used if PICTURE.index(place_of(name)) > own_place}


@pytest.mark.parametrize("file", files_in(*(set(ROOMS) - {"strategies", "catalogue"})))
def test_the_loop_knows_the_strategy_protocol_and_no_member(file):
    assert {name for name in own(file) if room(name) == "strategies"} <= STEPS_PROTOCOL


@pytest.mark.parametrize("file", files_of(*CORE))
def test_the_core_does_not_know_what_is_built_on_it(file):
    assert not {name for name in own(file) if layer(name) in OUTER}


@pytest.mark.parametrize("file", files_of(*OUTER))
def test_what_is_built_on_the_core_does_not_reach_into_its_steps(file):
    assert not {name for name in own(file) if room(name) and room(name) not in DOORS}


@pytest.mark.parametrize("file", files_of("evals", "fit", "research"))
def test_the_laboratory_is_built_on_fitting_and_fitting_on_the_benchmark(file):
    behind = LABORATORY[LABORATORY.index(layer(module_of(file))) + 1 :]
    assert not {name for name in own(file) if layer(name) in behind}


def test_an_import_by_text_counts():
    tree = ast.parse('importlib.import_module("starr.viewer.inline"); import_module(f"starr.evals.tasks.{name}")')
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert [name for call in calls for name in dynamic(call)] == ["starr.viewer.inline", "starr.evals.tasks"]


def test_what_a_strategy_knows_of_a_model_has_types():
    """``Any`` would hide what it reaches for."""
    tree = ast.parse((SOURCE / "starr/decode/strategies/base.py").read_text(encoding="utf8"))
    known = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.startswith("Known")]
    assert "KnownModel" in [node.name for node in known]
    assert not [node.name for node in known for part in ast.walk(node) if getattr(part, "id", "") == "Any"]


@pytest.mark.parametrize("file", files_of(*(set(OUTER) - {"cli"})))
def test_nothing_imports_the_command_line(file):
    assert not {name for name in own(file) if layer(name) == "cli"}


@pytest.mark.parametrize("file", [*files_of(*LIGHT), *(file for file in FILES if module_of(file) == BEFORE_TORCH)])
def test_start_up_imports_only_what_is_light(file):
    names = set(imports(file, top_level=True))
    outside = {name.split(".")[0] for name in names} - {"starr", "typer"} - set(sys.stdlib_module_names)
    inside = {name for name in names if layer(name) not in LIGHT and name.startswith("starr")} - {BEFORE_TORCH}
    assert not outside
    assert not inside


def test_what_is_public_says_what_it_is():
    """Every public class and function of a module outside ``decode/``."""
    silent = []
    for file in FILES:
        if layer(module_of(file)) == "decode":
            continue
        for node in ast.parse(file.read_text(encoding="utf8")).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name[0] == "_":
                continue
            if not ast.get_docstring(node) and "overload" not in map(ast.unparse, node.decorator_list):
                silent.append(f"{module_of(file)}.{node.name}")
    assert silent == []
