"""The extras: their libraries, their purpose, and a one-line error where one is missing.

Every verb checks before its work begins, so that no work is lost because a library is missing at the end.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from starr.errors import InputError


@dataclass(frozen=True, slots=True)
class Extra:
    """One extra; ``modules`` are what ``pip install 'starr-dlm[name]'`` must make importable."""

    name: str
    modules: tuple[str, ...]
    purpose: str

    @property
    def absent(self) -> list[str]:
        """The modules that are not installed."""
        return [module for module in self.modules if importlib.util.find_spec(module) is None]


EXTRAS = (
    Extra("serve", ("fastapi", "uvicorn", "prometheus_client"), "`starr serve`, the OpenAI-compatible server"),
    Extra("eval", ("math_verify", "matplotlib", "pyarrow"), "figures, math500 and tables of results"),
    Extra("ray", ("ray",), "`--ray`: eval, run and reproduce on many workers"),
    Extra("ray-serve", ("ray", "fastapi", "uvicorn", "prometheus_client"), "`starr serve --ray`, many servers as one"),
    Extra("grammar", ("outlines_core",), "regex, json_schema and choices: structured answers"),
    Extra("transformers", ("transformers",), "`starr.wrap`: modules that transformers has loaded"),
    Extra("diffusers", ("diffusers", "transformers"), "`STaRRScheduler` for diffusers' LLaDA2 pipeline"),
    Extra("lm-eval", ("lm_eval",), "`starr lm-eval`, and the four examples of math500"),
)
"""As in pyproject.toml; the extras for work on the project itself (docs, test) are not among them."""


def need(name: str, what: str) -> None:
    """Raise in one line unless the extra is installed; ``what`` is the subject of the sentence."""
    extra = next(extra for extra in EXTRAS if extra.name == name)
    if extra.absent:
        raise InputError(f"{what} needs {', '.join(extra.absent)}.", hint=f"pip install 'starr-dlm[{name}]'")
