"""Write a file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError

from starr.errors import WorkError


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file beside ``path``, then move it there; a failure leaves the old file."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        os.replace(part, path)
    except (OSError, SafetensorError) as error:
        raise WorkError(f"{path} could not be written: {error}.", hint="Is the disk full?") from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text to the disk itself; a device or a pipe is written to."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf8")
        return

    def write(part: Path) -> None:
        with part.open("w", encoding="utf8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, write)
