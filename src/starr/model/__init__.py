"""Weights to callable: the specification, the network, the tokenizer, and how they are loaded and written."""
