"""What a file of results was made with, kept beside it, so that ``--resume`` never joins results of other settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starr.errors import InputError, counted
from starr.named import text_form

if TYPE_CHECKING:
    from starr.cli.run import RunOptions

WHERE = ("model", "dtype", "family", "attention")
"""The flags of a model that change its answers."""


def describe_settings(options: RunOptions, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Everything that results depend on: the model, the options of decoding in their text forms, the prompts."""
    decoding = {name: write_value(value) for name, value in options.parse().keywords().items()}
    prompts = [hashlib.sha256(json.dumps([row["prompt"], row["seed"]]).encode()).hexdigest()[:12] for row in rows]
    return {name: getattr(options, name) for name in WHERE} | decoding | {"prompts": prompts}


def write_value(value: Any) -> Any:
    """A value as JSON has it: members in their text form."""
    if isinstance(value, tuple | list):
        return [write_value(each) for each in value]
    return text_form(value) if hasattr(value, "paper") else value


def begin(out: Path, settings: Mapping[str, Any], resume: bool) -> int:
    """Begin or continue a file of results: how many are there. Raise where results of other settings are."""
    if out.exists() and not out.is_file():  # a device or a pipe holds nothing
        return 0
    beside = out.with_name(f"{out.name}.settings.json")
    done = 0
    if out.exists() and out.stat().st_size:
        if not resume:
            hint = "Add --resume or choose another --out."
            raise InputError(f"{out} already has {counted(count_lines(out), 'line')}.", hint=hint, param="out")
        check_same(out, beside, settings, count_lines(out))
        done = cut_tail(out)
    from starr.model.files.output import write_text

    write_text(beside, json.dumps(settings, ensure_ascii=False))
    return done


def check_same(out: Path, beside: Path, settings: Mapping[str, Any], done: int) -> None:
    """Raise unless the results in ``out`` were made with these settings. Prompts may be added after them."""
    hint = "Use the same settings or another --out."
    try:
        before = dict(json.loads(beside.read_text(encoding="utf8")))
    except (OSError, ValueError, TypeError):
        rule = f"{out} cannot be continued: {beside.name}, which says how it was made, cannot be read."
        raise InputError(rule, hint="Choose another --out.", param="resume") from None
    for name, value in settings.items():
        if name != "prompts" and before.get(name) != value:
            rule = f"{out} was made with {name} {before.get(name)!r}, this run has {value!r}."
            raise InputError(rule, hint=hint, param=name)
    theirs, ours = before.get("prompts", [])[:done], settings["prompts"][:done]
    if theirs != ours:
        place = next((i for i, pair in enumerate(zip(theirs, ours, strict=False)) if pair[0] != pair[1]), len(ours))
        raise InputError(f"{out} was made with another prompt or seed in line {place + 1}.", hint=hint, param="input")


def count_lines(path: Path) -> int:
    """How many whole lines a file holds."""
    return path.read_bytes().count(b"\n")


def cut_tail(path: Path) -> int:
    """Remove a last line that was cut short; how many whole ones there are."""
    if not path.is_file():
        return 0
    text = path.read_bytes()
    end = text.rfind(b"\n") + 1
    if end < len(text):
        with path.open("rb+") as file:
            file.truncate(end)
    return text[:end].count(b"\n")
