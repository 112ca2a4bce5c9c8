"""The server: continuous batching behind an OpenAI-compatible API (extra ``serve``)."""
