"""A server's figures among Ray's metrics, where every replica has a label of its own."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Exporter:
    """Copies every sample of a registry to a gauge of Ray's with the same labels; ``vllm:x`` becomes ``vllm_x``.

    Counters and buckets stay cumulative, so that rates and quantiles are computed as ever.
    """

    def __init__(self, registry: Any) -> None:
        self.registry = registry
        self.gauges: dict[str, Any] = {}
        self.kind: Any = import_module("ray.serve.metrics").Gauge

    def export(self) -> None:
        """Copy all samples as they are now."""
        for family in self.registry.collect():
            for sample in family.samples:
                if not sample.name.endswith("_created"):
                    self.gauge(sample, family.documentation).set(sample.value, tags=dict(sample.labels))

    def gauge(self, sample: Any, help: str) -> Any:
        """Ray's gauge for a sample, made once."""
        name = sample.name.replace(":", "_")
        if name not in self.gauges:
            self.gauges[name] = self.kind(name, description=help, tag_keys=tuple(sample.labels))
        return self.gauges[name]
