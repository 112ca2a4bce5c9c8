"""The application of ``starr serve`` as a Ray Serve deployment: one server per replica.

Ray Serve takes the requests and chooses a replica; everything behind is the server's own code. A replica counts as
started when its model is loaded, and is replaced when an engine thread is dead or stuck.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from starr.cluster.worker import ModelSource, load
from starr.named import check_range
from starr.optional import need
from starr.server.settings import Settings

if TYPE_CHECKING:
    from starr.model.load import Model

NAME = "starr"
IMPORT_PATH = "starr.cluster.replica:application"
PERIOD = 2.0  # seconds between two checks of a replica's health
SPARE = 16  # requests of a full replica: health, metrics, those that it refuses
KEY = "STARR_API_KEY"


@dataclass(frozen=True, slots=True)
class Replicas:
    """How many servers, and what each gets; ``most`` above ``least`` lets Ray Serve choose between them."""

    least: int = 1
    most: int | None = None
    gpus: float = 0.0
    cpus: float = 1.0

    def __post_init__(self) -> None:
        check_range("--replicas", self.least, 1)
        check_range("--cpus-per-replica", self.cpus, 0, whole=False, open_low=True)
        check_range("--gpus-per-replica", self.gpus, 0, whole=False)
        if self.most is not None:
            check_range("--max-replicas", self.most, self.least)


def make_options(replicas: Replicas, settings: Settings) -> dict[str, Any]:
    """Make the options of the deployment from the engine's own bounds.

    A replica takes what its engines decode and queue, and SPARE requests that need no row; it refuses what is more
    itself. Ray Serve queues requests while no replica is up or has room, and refuses the rest. A replica that ends has
    as long as the longest request may take.
    """
    rows = settings.max_rows * (settings.engines or max(1, int(replicas.cpus)))
    options: dict[str, Any] = {
        "name": NAME,
        "max_ongoing_requests": rows + settings.max_queue + SPARE,
        "max_queued_requests": settings.max_queue,
        "backpressure_config": {"status_code": 429, "retry_after_s": 1.0},
        "health_check_period_s": PERIOD,
        "health_check_timeout_s": 60.0,
        "graceful_shutdown_timeout_s": settings.timeout,
        "graceful_shutdown_wait_loop_s": 0.5,
        "max_constructor_retry_count": 3,
        "ray_actor_options": {"num_cpus": replicas.cpus, "num_gpus": replicas.gpus},
    }
    if replicas.most is None or replicas.most == replicas.least:
        return options | {"num_replicas": replicas.least}
    bounds = {"min_replicas": replicas.least, "max_replicas": replicas.most, "target_ongoing_requests": rows}
    return options | {"autoscaling_config": bounds}


class Exporter:
    """Copies every sample of a registry to a gauge of Ray's with the same labels; ``vllm:x`` becomes ``vllm_x``.

    Counters and buckets stay cumulative, so that rates and quantiles keep their meaning.
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
        """Return Ray's gauge for a sample, made once."""
        name = sample.name.replace(":", "_")
        if name not in self.gauges:
            self.gauges[name] = self.kind(name, description=help, tag_keys=tuple(sample.labels))
        return self.gauges[name]


class Replica:
    """One server of many; Ray Serve adds the application as ``app``."""

    app: Any
    exporter: Exporter | None = None

    def check_health(self) -> None:
        """Raise where the model cannot be loaded or an engine thread is dead or stuck; the first call waits for it.

        Rows of such a thread are ended: Ray Serve would wait for them. It asks every PERIOD seconds, and replaces the
        replica at the third failure; the figures of the server go to Ray's metrics at the same time.
        """
        service = self.app.state.service
        service.loading.join()
        service.ready.pool.give_up()
        service.check_health()
        if self.exporter is None:
            self.exporter = Exporter(service.ready.metrics.registry)
        self.exporter.export()


def make_deployment(loader: Callable[[], Model], replicas: Replicas, settings: Settings) -> Any:
    """Make a deployment of servers whose model ``loader`` gives, bound and ready to run."""
    need("ray-serve", "starr serve --ray")
    serve: Any = import_module("ray.serve")

    def build() -> Any:
        from starr.server.http.app import create_app

        return create_app(loader, settings)

    return serve.deployment(**make_options(replicas, settings))(serve.ingress(build)(Replica)).bind()


def application(arguments: Mapping[str, Any]) -> Any:
    """Make the deployment from the values of ``write_arguments``; a file for ``serve deploy`` names this function.

    A key is never written to a file: without one here, STARR_API_KEY of Ray's own environment counts.
    """
    given: dict[str, Any] = {"api_key": os.environ.get(KEY)} | arguments["settings"]
    given |= {name: tuple(given[name]) for name in ("cors", "allow_host") if name in given}
    settings = Settings(**given)
    source, name = ModelSource(**arguments["model"]), arguments.get("served_model_name")

    def loader() -> Model:
        model = load(source)
        return model if name is None else replace(model, name=name)

    return make_deployment(loader, Replicas(**arguments.get("replicas", {})), settings)


def write_arguments(source: ModelSource, name: str | None, replicas: Replicas, settings: Settings) -> dict[str, Any]:
    """Write plain values for ``application``: nothing that YAML cannot write."""
    source = replace(source, threads=max(1, int(replicas.cpus)))
    shared = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(settings).items()}
    return {"model": asdict(source), "served_model_name": name, "replicas": asdict(replicas), "settings": shared}
