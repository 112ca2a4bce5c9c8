"""Two masked models of other people, from their packages: fetched by pip, converted, and kept in a cache.

Nothing of the packages is installed, run or committed: the wheels are opened as archives, their weights are converted
as ``starr models convert`` does it, and a tokenizer.json is written for their lists of tokens.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordLevel

from starr.errors import WorkError
from starr.model.files.unpickle import convert_folder

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
COMMIT = "a01ecdcd5ac944850e9691739c1df858e005fd39"
EXAMPLES = (  # of the package's repository; its wheel has none
    f"https://raw.githubusercontent.com/rxn4chemistry/rxnmapper/{COMMIT}/examples/example_rxns.csv"
)


@dataclass(frozen=True)
class Package:
    """A package with a model: where it is in the wheel, and how its texts are cut into tokens."""

    name: str
    version: str
    weights: str  # the folder of the weights
    vocabulary: str
    pattern: str  # one token


RXNMAPPER = Package(
    "rxnmapper",
    "0.4.3",
    "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
    "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/vocab.txt",
    r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.",
)
ANTIBERTY = Package(
    "antiberty",
    "0.1.1",
    "antiberty/trained_models/AntiBERTy_md_smooth",
    "antiberty/trained_models/vocab.txt",
    ".",
)


def cache_folder() -> Path:
    """Where packages and models are kept between runs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "starr" / "outside"


def model_folder(package: Package, cache: Path) -> Path:
    """The folder that ``starr.load`` reads; made once."""
    target = cache / f"{package.name}-{package.version}"
    if (target / "tokenizer.json").exists():
        return target
    opened = cache / f"{package.name}-opened"
    with ZipFile(wheel_of(package, cache)) as wheel:
        for name in (f"{package.weights}/config.json", f"{package.weights}/pytorch_model.bin", package.vocabulary):
            write_bytes(opened / Path(name).name, wheel.read(name))
    shutil.rmtree(target, ignore_errors=True)
    convert_folder(opened, target)
    (target / "vocab.txt").unlink(missing_ok=True)
    marks = {"mask_token": "[MASK]", "pad_token": "[PAD]"}
    (target / "tokenizer_config.json").write_text(json.dumps(marks), encoding="utf8")
    tokens = (opened / "vocab.txt").read_text(encoding="utf8").split("\n")
    tokenizer(tokens, package.pattern).save(str(target / "tokenizer.json"))
    shutil.rmtree(opened)
    return target


def wheel_of(package: Package, cache: Path) -> Path:
    """The package's wheel, fetched by pip without what it depends on."""
    cache.mkdir(parents=True, exist_ok=True)
    wanted = f"{package.name}-{package.version}-*.whl"
    if not list(cache.glob(wanted)):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-q", "-d", str(cache)]
        done = subprocess.run([*command, f"{package.name}=={package.version}"], check=False)
        if done.returncode or not list(cache.glob(wanted)):
            raise WorkError(f"pip could not fetch {package.name} {package.version}.", hint="Is there a network?")
    return next(iter(cache.glob(wanted)))


def tokenizer(tokens: list[str], pattern: str) -> Tokenizer:
    """One token for every match of ``pattern``; texts are joined without spaces."""
    vocabulary = {token: index for index, token in enumerate(tokens) if token}
    made = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    made.decoder = decoders.Fuse()
    made.add_special_tokens(list(SPECIAL))
    return made


def reactions(cache: Path, file: Path | None) -> list[str]:
    """The package's own examples: from ``file``, the cache, or its repository."""
    place = file or cache / "example_rxns.csv"
    if not place.exists():
        try:
            with urlopen(EXAMPLES, timeout=60) as answer:
                write_bytes(place, answer.read())
        except OSError as error:
            hint = "Give the repository's examples/example_rxns.csv with --reactions."
            raise WorkError(f"The package's examples cannot be fetched: {error}.", hint=hint) from None
    with place.open(encoding="utf8", newline="") as lines:
        return [row["rxn"] for row in csv.DictReader(lines)]


def write_bytes(path: Path, data: bytes) -> None:
    """A file, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".part")
    fresh.write_bytes(data)
    fresh.replace(path)
