"""Checkpoints on disk: where they are, what they say, their tensors."""
