"""Where a model's files are: the bundled folder, a folder of the user's, or a repository on the hub."""

from __future__ import annotations

import errno
import logging
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from starr.errors import LoadError
from starr.model.released import suggest_name

BUNDLED = "bundled"
BUNDLED_FOLDER = Path(__file__).parents[1] / BUNDLED
BUNDLED_NAMES = (BUNDLED, "bundled-dream", "bundled-blocks")  # LLaDA's, Dream's and SDAR's format
TOKENIZER_FILES = [
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "added_tokens.json",
    "chat_template.jinja",
]
WANTED = ["config.json", "adapter_config.json", "*.safetensors", "*.safetensors.index.json", *TOKENIZER_FILES]
HEAD = ["config.json", *TOKENIZER_FILES]  # what a checkpoint says about itself
OFFLINE = (
    "Offline: give a folder with the model's files, or set HF_HOME to a cache that holds it "
    "(with HF_HUB_OFFLINE=1 to skip the network), or use the bundled model."
)


def locate(source: str | Path | None) -> tuple[Path, str]:
    """The folder with the files of ``source`` and the model's name: one of the package's, a folder, or a hub id.

    None is the package's first model.
    """
    if source is None or str(source) in BUNDLED_NAMES:
        name = BUNDLED if source is None else str(source)
        folder = bundled_folder(name)
        if not (folder / "config.json").exists():
            raise LoadError(f"{name} is not in {folder}.", hint="Install the package again, or name a folder.")
        return folder, name
    if source == "":  # as a path it would be the current folder
        raise LoadError("The model's name is empty.", hint="Give a folder or a hub id.", param="model")
    folder = Path(source).expanduser()
    if folder.is_dir():
        refuse_gguf(folder)
        return folder, folder.resolve().name
    if folder.exists():
        refuse_gguf(folder)
        raise LoadError(f"{source} is a file.", hint="Give the folder that holds the model's files.", param="model")
    if isinstance(source, Path) or not re.fullmatch(r"\w[\w.-]*/[\w.-]+", source):
        raise LoadError(
            f"There is no folder {source}, and it is not a hub id.",
            hint=suggest_name(str(source)) or "A hub id is owner/name.",
            param="model",
        )
    return download(source), source


def refuse_gguf(path: Path) -> None:
    """Raise where the weights are in llama.cpp's format only."""
    if path.suffix == ".gguf" or (any(path.glob("*.gguf")) and not any(path.glob("*.safetensors"))):
        hint = "Give the original checkpoint: a folder with config.json and safetensors, or its hub id."
        raise LoadError(f"{path} has weights in GGUF, which is not read here.", hint=hint, param="model")


def bundled_folder(name: str) -> Path:
    """Where the package keeps one of its models: ``bundled-dream`` in bundled_dream, beside the first."""
    return BUNDLED_FOLDER.with_name(BUNDLED_FOLDER.name + name.removeprefix(BUNDLED).replace("-", "_"))


def shared_folder(folder: Path) -> Path:
    """The folder with the files about a model's training; the package's models share one."""
    return BUNDLED_FOLDER if folder in map(bundled_folder, BUNDLED_NAMES) else folder


@contextmanager
def quiet_hub() -> Iterator[bool]:
    """The hub's client without its own lines on standard error; yields whether only its cache can be used.

    Without a network the client would try six times and wait half a minute, so its host's name is looked up first. A
    proxy looks names up itself.
    """
    from huggingface_hub import constants

    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield not (getproxies() or found(urlsplit(constants.ENDPOINT).hostname or ""))
    finally:
        logger.setLevel(level)


def found(host: str) -> bool:
    """Whether a name can be looked up from here."""
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False


def download(repository: str, wanted: Sequence[str] = WANTED) -> Path:
    """Fetch a repository's config, tokenizer and safetensors (nothing that runs) into the hub's cache.

    ``wanted`` names fewer files: HEAD is what a checkpoint says about itself.
    """
    from huggingface_hub import errors, snapshot_download

    try:
        with quiet_hub() as only_cache:
            folder = snapshot_download(
                repository, allow_patterns=list(wanted), ignore_patterns=["*/*"], local_files_only=only_cache
            )
            return Path(folder)
    except errors.GatedRepoError:
        raise LoadError(
            f"{repository} is gated.", hint="Accept its terms on the hub, then log in: `hf auth login`.", param="model"
        ) from None
    except errors.RepositoryNotFoundError:
        raise LoadError(
            f"The hub has no model {repository!r}, or it is private.",
            hint=suggest_name(repository) or "Check the spelling.",
            param="model",
        ) from None
    except Exception as error:  # the hub client's releases use different network libraries, each with its own errors
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise LoadError("The disk is full.", hint="Free space, or set HF_HOME to another disk.") from None
        raise LoadError(
            f"The hub could not be reached for {repository} ({type(error).__name__}).", hint=OFFLINE, param="model"
        ) from None
