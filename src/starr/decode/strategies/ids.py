"""Token ids inside a strategy's options: ``auto`` until a model is known, ``none``, or ids separated by ``/``."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from starr.decode.strategies.base import KnownModel
from starr.errors import InputError


def parse_ids(text: str, where: str) -> tuple[int, ...]:
    """The ids of the text; ``auto`` and ``none`` have none."""
    if text in ("auto", "none"):
        return ()
    if not all(part.isdecimal() for part in text.split("/")):
        option = where.rpartition(" ")[2]
        raise InputError(f"{where} must be auto, none or token ids like 13/198, got {text!r}.", param=option)
    return tuple(int(part) for part in text.split("/"))


def check_ids(text: str, model: KnownModel, where: str) -> None:
    """Raise unless the ids are tokens of the model, and none is its mask."""
    size, mask = model.spec.shape.vocab_size, model.spec.mask_id
    for token in parse_ids(text, where):
        if token >= size or token == mask:
            rule = f"{where} must be token ids from 0 to {size - 1}, without the mask {mask}"
            raise InputError(f"{rule}, got {token}.", param=where.rpartition(" ")[2])


def ids_text(ids: Iterable[int]) -> str:
    """The text that ``parse_ids`` reads back."""
    return "/".join(str(token) for token in ids) or "none"


def is_one_of(tokens: Tensor, ids: tuple[int, ...]) -> Tensor:
    """(B, W) bool: where a token is one of the ids."""
    return torch.isin(tokens, torch.tensor(ids, dtype=tokens.dtype, device=tokens.device))
