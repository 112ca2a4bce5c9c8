"""PyTorch's ``.bin`` files to safetensors, in a child process with limits: nothing of a pickle is read here.

The child reads with torch's reader of weights alone, which makes tensors and nothing else, and writes their values.
``python -m starr.model.files.unpickle IN OUT`` is the child.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from starr.errors import InputError, LoadError
from starr.model.files.config import read_json
from starr.model.files.convert import write_whole
from starr.model.files.hub import TOKENIZER_FILES

SINGLE, INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
SECONDS = 900  # for one file
SPARE = 6 << 30  # bytes of memory beyond four times the file
KEPT = ("config.json", "generation_config.json", *TOKENIZER_FILES)


def convert_folder(source: Path, target: Path) -> list[Path]:
    """Write a folder of safetensors with the weights of a folder of pickles; the files that were written."""
    files = pickle_files(source)
    if source.resolve() == target.resolve() or list(target.glob("*.safetensors")):
        raise InputError(f"{target} holds a model already.", hint="Name an empty folder.", param="out")
    target.mkdir(parents=True, exist_ok=True)
    made = []
    for number, file in enumerate(files, start=1):
        name = f"model-{number:05d}-of-{len(files):05d}.safetensors" if len(files) > 1 else "model.safetensors"
        write_whole(target / name, lambda part, file=file: convert_file(file, part))  # type: ignore[misc]
        made.append(target / name)
    for name in KEPT:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
            made.append(target / name)
    return made


def pickle_files(folder: Path) -> list[Path]:
    """The weight files of a folder: those its index names, or the one there is."""
    names = [SINGLE]
    if (folder / INDEX).exists():
        listed = read_json(folder / INDEX).get("weight_map")
        if not isinstance(listed, dict) or not all(Path(str(name)).name == name for name in listed.values()):
            raise LoadError(f"{folder / INDEX} has no weight_map of plain file names.")
        names = sorted(set(listed.values()))
    for name in names:
        if not (folder / name).is_file():
            raise LoadError(f"{folder} has no {name}.", hint="Only PyTorch's .bin files are converted.")
    return [folder / name for name in names]


def convert_file(source: Path, target: Path) -> None:
    """Let the child convert one file; LoadError in one line where it cannot."""
    paths = os.pathsep.join(part for part in sys.path if part)
    command = [sys.executable, "-m", "starr.model.files.unpickle", str(source), str(target)]
    env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    try:
        child = subprocess.run(command, capture_output=True, encoding="utf8", env=env, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise LoadError(f"{source.name} took more than {SECONDS} seconds.") from None
    if child.returncode:
        why = child.stdout.strip().splitlines()[-1:] or [f"the child ended with {child.returncode}"]
        raise LoadError(f"{source.name} cannot be converted: {why[0][:200]}.", hint="It may hold more than weights.")


def main(source: str, target: str) -> None:
    """The child: weights in, safetensors out; what is no floating number is left out, as buffers of positions are."""
    with suppress(ImportError):  # not on every system
        import resource

        memory = 4 * os.path.getsize(source) + SPARE
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    import torch
    from safetensors.torch import save_file

    try:
        state = torch.load(source, map_location="cpu", weights_only=True)
        state = state.get("state_dict", state) if isinstance(state, dict) else {}
        tensors = {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
        floats = {
            key: value.detach().clone().contiguous() for key, value in tensors.items() if value.is_floating_point()
        }
        if not floats:
            raise ValueError("it holds no weights")
        save_file(floats, target, metadata={"format": "pt"})
    except Exception as error:  # whatever the reader finds in a file of somebody else
        print(next(iter(str(error).splitlines()), type(error).__name__))
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(*sys.argv[1:])
