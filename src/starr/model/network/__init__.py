"""The one transformer: layers, packing, K/V buffer."""
