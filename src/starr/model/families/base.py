"""What a family is: how its checkpoints are read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starr.model.families.names import TensorNames
from starr.model.files.config import Config
from starr.model.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Family:
    """One family, and its chat template for repositories that ship none."""

    name: str
    architectures: tuple[str, ...]
    members: str
    read_config: Callable[[Config, Mapping[str, int], str], ModelSpec]
    write_config: Callable[[ModelSpec], dict[str, Any]]
    names: TensorNames
    template: str | None = None
    template_tokens: tuple[str, ...] = ()  # the template is used only if the tokenizer has these
    template_names: tuple[str, ...] = ()  # and for these models alone, where some are named
    template_variables: Mapping[str, Any] = field(default_factory=dict)  # what any template is told
    any_attention: bool = False  # full or in blocks: the same layers serve both
    reply_tag: str = ""  # what a chat rendered by the shipped template must end with
