"""Fit a commit rule on a model and prompts, without answers: visit states, finish carefully, see what stood."""
