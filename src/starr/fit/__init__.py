"""Fit decoding to a model and a task: calibrated rules, and tuned options of a strategy."""
