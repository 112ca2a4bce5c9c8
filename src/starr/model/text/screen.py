"""Bound what a tokenizer.json may ask for, before the library reads it.

The library's own checks are of types. An id of 4e9 makes it count to there, and a chain of replacements multiplies a
text until memory ends, which no caller can catch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starr.errors import LoadError
from starr.model.files.config import MOST

STAGES = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
NORMALIZERS = (
    "Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "Replace", "Prepend",
    "BertNormalizer", "Nmt", "ByteLevel",
)  # fmt: skip
MOST_PARTS, MOST_TEXT = 64, 4000  # entries of a list, and characters of a text, in a stage
MOST_GROWTH = 64  # times that replacements may lengthen a text


def screen(data: Mapping[str, Any]) -> None:
    """Raise LoadError for a tokenizer.json whose ids, lists, texts or replacements are out of bounds."""
    model = data.get("model")
    model = model if isinstance(model, dict) else {}
    vocabulary = model.get("vocab")
    check_ids(vocabulary.values() if isinstance(vocabulary, dict) else ())
    added = data.get("added_tokens") or []
    check_ids(entry.get("id") for entry in added if isinstance(entry, dict))
    if model.get("dropout"):
        raise LoadError("tokenizer.json: dropout would give a text different tokens each time; it must be null.")
    if any(True for _ in find_expressions(data.get("decoder"))):
        raise LoadError("tokenizer.json: the decoder has a regular expression, which is not supported.")
    for stage in STAGES:
        parts = list(walk_parts(data.get(stage), stage))
        growth = math.prod(measure_growth(part) for part in parts)
        if growth > MOST_GROWTH:
            raise LoadError(f"tokenizer.json: the {stage} may lengthen a text more than {MOST_GROWTH} times.")
        unknown = [part["type"] for part in parts if part["type"] not in NORMALIZERS and stage == "normalizer"]
        if unknown:
            raise LoadError(f"tokenizer.json: the normalizer {str(unknown[0])[:40]!r} is not supported.")


def check_ids(ids: Iterable[Any]) -> None:
    """Ids are whole numbers from 0 to MOST."""
    for found in ids:
        if type(found) is not int or not 0 <= found <= MOST:
            raise LoadError(f"The tokenizer's ids must be whole numbers from 0 to {MOST}, not {repr(found)[:40]}.")


def walk_parts(value: Any, stage: str) -> Iterator[dict[str, Any]]:
    """Every object with a type within a stage, its lists and texts checked."""
    if isinstance(value, dict):
        if "type" in value:
            yield value
        value = list(value.values())
    elif isinstance(value, list) and len(value) > MOST_PARTS:
        raise LoadError(f"tokenizer.json: the {stage} has a list of {len(value)} parts, more than {MOST_PARTS}.")
    if isinstance(value, str) and len(value) > MOST_TEXT:
        raise LoadError(f"tokenizer.json: the {stage} has a text of {len(value)} characters, more than {MOST_TEXT}.")
    for inner in value if isinstance(value, list) else ():
        yield from walk_parts(inner, stage)


def find_expressions(stage: Any) -> Iterator[Any]:
    """All regular expressions of a stage, wherever they stand."""
    if isinstance(stage, dict) and "Regex" in stage:
        yield stage["Regex"]
    for part in stage.values() if isinstance(stage, dict) else stage if isinstance(stage, list) else ():
        yield from find_expressions(part)


def measure_growth(part: Mapping[str, Any]) -> float:
    """How many times longer a part can make a text; a regular expression may match between any two characters."""
    if part["type"] == "Replace":
        content, pattern = len(str(part.get("content", ""))), part.get("pattern")
        old = pattern.get("String") if isinstance(pattern, dict) else None
        if old == "":
            raise LoadError("tokenizer.json: a replacement has no pattern.")  # the library fails on the first text
        return max(1.0, content / len(old)) if isinstance(old, str) and old else 1.0 + content
    if part["type"] == "TemplateProcessing" and isinstance(part.get("single"), list):
        return max(1.0, sum("Sequence" in piece for piece in part["single"] if isinstance(piece, dict)))
    return 1.0 + len(str(part.get("prepend", ""))) if part["type"] == "Prepend" else 1.0
