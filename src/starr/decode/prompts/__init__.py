"""Canvases with text inside: in-place chain of thought, and infilling."""
