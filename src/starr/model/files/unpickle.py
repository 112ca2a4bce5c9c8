"""PyTorch's ``.bin`` files to safetensors, in a child process with limits: nothing of a pickle is read here.

The child reads with torch's reader of weights alone, which makes tensors and nothing else, and writes their values.
``python -m starr.model.files.unpickle IN OUT`` is the child.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from starr.errors import InputError, LoadError
from starr.model.child import child_environment, limit_memory
from starr.model.files.hub import TOKENIZER_FILES
from starr.model.files.output import write_whole
from starr.model.files.weights import list_shards

SINGLE, INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
SECONDS = 900  # for one file
SPARE = 6 << 30  # bytes of memory beyond four times the file
KEPT = ("config.json", "generation_config.json", *TOKENIZER_FILES)


def convert_folder(source: Path, target: Path) -> list[Path]:
    """Write the weights of a folder of pickles as a folder of safetensors; return the files written."""
    files = list_pickles(source)
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


def list_pickles(folder: Path) -> list[Path]:
    """List the weight files of a folder: those of its index, or the single one."""
    files = list_shards(folder / INDEX) if (folder / INDEX).exists() else [folder / SINGLE]
    for file in files:
        if not file.is_file():
            raise LoadError(f"{folder} has no {file.name}.", hint="Only PyTorch's .bin files are converted.")
    return files


def convert_file(source: Path, target: Path) -> None:
    """Let the child convert one file; LoadError in one line where it cannot."""
    command = [sys.executable, "-m", "starr.model.files.unpickle", str(source), str(target)]
    env = child_environment() | {"OMP_NUM_THREADS": "1"}
    try:
        child = subprocess.run(command, capture_output=True, encoding="utf8", env=env, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise LoadError(f"{source.name} took more than {SECONDS} seconds.") from None
    if child.returncode:
        why = child.stdout.strip().splitlines()[-1:] or [f"the child ended with {child.returncode}"]
        raise LoadError(f"{source.name} cannot be converted: {why[0][:200]}.", hint="It may hold more than weights.")


def main(source: str, target: str) -> None:
    """Convert a file, in the child; leave out tensors that are no floating numbers, such as buffers of positions."""
    limit_memory(4 * os.path.getsize(source) + SPARE)
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
