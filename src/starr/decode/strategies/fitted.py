"""What was fitted on a model: a JSON file that is found, read once, and refused on another model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import torch

from starr.decode.strategies.base import KnownModel, Strategy
from starr.errors import InputError

Fitted = TypeVar("Fitted")
S = TypeVar("S", bound=Strategy)
Parse = Callable[[dict[str, Any], str], Fitted]  # a file's content and its name to what was fitted


def find_fitted(where: str, model: KnownModel, what: str, package: str, parse: Parse[Fitted], hint: str) -> Fitted:
    """What a file holds, or with ``auto`` what ships for the model in the folder ``{what}s`` of ``package``."""
    path = Path(where)
    if where == "auto":
        path = Path(str(files(package) / f"{what}s" / f"{fingerprint(model)}.json"))
        if not path.is_file():
            raise InputError(f"No {what} ships for the model {model.spec.name}.", hint=hint, param="strategy")
    found: Fitted = read_fitted(parse, what, str(path), path.stat().st_mtime_ns if path.exists() else 0)
    return found


@lru_cache(maxsize=64)
def read_fitted(parse: Parse[Fitted], what: str, path: str, changed: int) -> Fitted:
    """What a file holds; ``changed`` is the file's time, so that a file that was written again is read again."""
    try:
        body = json.loads(Path(path).read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"Cannot read the {what} {path} ({type(error).__name__}).", param=what) from None
    return parse(body, path)


def on_device(fitted: Fitted, model: KnownModel) -> Fitted:
    """A copy of a frozen dataclass whose tensors lie where the model's weights do."""
    device, parts = model.net.head_weight.device, fields(fitted)  # type: ignore[arg-type]
    tensors = {part.name: value for part in parts if isinstance(value := getattr(fitted, part.name), torch.Tensor)}
    moved: Fitted = replace(fitted, **{name: value.to(device) for name, value in tensors.items()})  # type: ignore[type-var]
    return moved


def bind_fitted(strategy: S, model: KnownModel, fitted: Any, what: str, hint: str) -> S:
    """A copy of a strategy with what was fitted and the model's end-of-text ids; refused on another model.

    The strategy is a dataclass with the fields ``fitted``, ``ends`` and ``foreign``, which allows another model.
    """
    if not getattr(strategy, "foreign", False):
        check_fitted_on(model, fitted.fitted_on, what, hint)
    bound: S = replace(strategy, fitted=on_device(fitted, model), ends=model.spec.eos_ids)  # type: ignore[type-var]
    return bound


def check_fitted_on(model: KnownModel, fitted_on: Mapping[str, Any], what: str, hint: str) -> None:
    """Raise unless the model is the one that ``fitted_on`` names."""
    own, theirs = fingerprint(model), fitted_on.get("fingerprint")
    if theirs != own:
        raise InputError(
            f"The {what} was fitted on another model ({fitted_on.get('model')}, {theirs}), this one is {own}.",
            hint=hint,
            param=what,
        )


def fingerprint(model: KnownModel) -> str:
    """Twelve letters that change with the weights, the same in every dtype: strided values, rounded to bfloat16."""
    weight = model.net.head_weight.flatten()
    some = weight[:: max(1, weight.numel() // 4096)].to(torch.bfloat16).float().cpu()
    text = f"{model.spec.family} {tuple(model.net.head_weight.shape)} {some.tolist()}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]
