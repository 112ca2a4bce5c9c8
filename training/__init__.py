"""Trains the bundled model: data, tokenizer, training, export, evaluation (see README.md)."""

import starr  # noqa: F401  before torch, so that waiting threads sleep
