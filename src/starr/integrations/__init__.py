"""STaRR inside other people's programs."""
