"""Trains the bundled model: data, tokenizer, training, export, evaluation (see README.md)."""
