"""Runs of an evaluation: decoding, storing, reporting."""
