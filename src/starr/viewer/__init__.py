"""Looking at traces: one HTML file, plots for papers, and live decoding in a terminal.

Everything here takes trace format 1 as plain dicts (or stream events) and imports no torch.
"""
