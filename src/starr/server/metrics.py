"""Prometheus metrics: vLLM's names, so that its dashboards and benchmark client work, and our own."""

from __future__ import annotations

from time import monotonic
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from starr.server.http.answers import FinishedRow
from starr.server.queue.job import Job
from starr.server.queue.pool import Pool

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
RATIO = (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 32)


class Metrics:
    """One server's counters, written by the event loop only; the gauges are read off the engine threads."""

    def __init__(self, pool: Pool) -> None:
        self.registry = CollectorRegistry()
        self.model = pool.model.name
        self.gauge("num_requests_running", "Rows being decoded.").set_function(lambda: pool.running)
        self.gauge("num_requests_waiting", "Rows in the queue.").set_function(lambda: pool.waiting)
        self.prompt_tokens = self.counter("vllm:prompt_tokens", "Prompt tokens of answered requests.")
        self.generation_tokens = self.counter("vllm:generation_tokens", "Tokens up to the end of the text.")
        self.success = Counter(
            "vllm:request_success", "Answered rows.", ["model_name", "finished_reason"], registry=self.registry
        )
        self.first = self.histogram("vllm:time_to_first_token_seconds", "Until the first settled text.", SECONDS)
        self.latency = self.histogram("vllm:e2e_request_latency_seconds", "Until the answer is complete.", SECONDS)
        self.queued = self.histogram("vllm:request_queue_time_seconds", "Until the first forward.", SECONDS)
        self.inference = self.histogram("vllm:request_inference_time_seconds", "From first forward to last.", SECONDS)
        self.per_token = self.histogram("vllm:request_time_per_output_token_seconds", "Seconds per token.", SECONDS)
        self.prompt_sizes = self.histogram("vllm:request_prompt_tokens", "Prompt tokens of a row.", TOKENS)
        self.sizes = self.histogram("vllm:request_generation_tokens", "Tokens of a row.", TOKENS)
        self.forwards = self.counter("starr:forwards", "Forwards, counted per row.")
        self.positions = self.counter("starr:positions", "Positions recomputed.")
        self.revocations = self.counter("starr:revocations", "Tokens revoked (remasked).")
        self.pace = self.histogram("starr:tokens_per_forward", "Tokens per forward of a row.", RATIO)
        self.left = Counter("starr:left", "Requests whose client disconnected.", registry=self.registry)
        self.failed = Counter("starr:failed", "Requests that failed or timed out.", registry=self.registry)

    def gauge(self, name: str, help: str) -> Any:
        """A gauge under vLLM's prefix, with the model's label."""
        return Gauge(f"vllm:{name}", help, ["model_name"], registry=self.registry).labels(self.model)

    def counter(self, name: str, help: str) -> Any:
        """A counter with the model's label."""
        return Counter(name, help, ["model_name"], registry=self.registry).labels(self.model)

    def histogram(self, name: str, help: str, buckets: tuple[float, ...]) -> Any:
        """A histogram with the model's label."""
        return Histogram(name, help, ["model_name"], buckets=buckets, registry=self.registry).labels(self.model)

    def count(self, job: Job, rows: list[FinishedRow]) -> None:
        """Count a job that was answered."""
        for ticket, row in zip(job.tickets, rows, strict=True):
            end = ticket.ended_at or monotonic()
            began = ticket.admitted_at or end
            made = row.made
            self.prompt_tokens.inc(ticket.request.start)
            self.generation_tokens.inc(made)
            self.success.labels(self.model, row.finish_reason).inc()
            self.first.observe((ticket.first_text_at or end) - ticket.queued_at)
            self.latency.observe(end - ticket.queued_at)
            self.queued.observe(began - ticket.queued_at)
            self.inference.observe(end - began)
            self.per_token.observe((end - began) / max(made, 1))
            self.prompt_sizes.observe(ticket.request.start)
            self.sizes.observe(made)
            self.forwards.inc(row.forwards)
            self.positions.inc(row.positions)
            self.revocations.inc(row.revocations)
            self.pace.observe(made / max(row.forwards, 1))

    def page(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return bytes(generate_latest(self.registry))
