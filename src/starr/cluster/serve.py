"""``starr serve --ray``: replicas on a Ray of our own or on a cluster, until told to stop; or a file that says how."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from starr.cluster.replica import IMPORT_PATH, NAME, Replicas, application, make_options, write_arguments
from starr.cluster.start import LOCAL, TRIES, Size, connect
from starr.cluster.worker import ModelSource
from starr.errors import InputError, WorkError
from starr.optional import need
from starr.server.settings import Settings


@dataclass(frozen=True, slots=True)
class Served:
    """What is served, and how."""

    source: ModelSource
    name: str | None  # that clients use; None: the model's own
    replicas: Replicas
    settings: Settings

    @property
    def arguments(self) -> dict[str, Any]:
        """Plain values for ``application``."""
        return write_arguments(self.source, self.name, self.replicas, self.settings)

    @property
    def http(self) -> dict[str, Any]:
        """Options of Ray Serve's proxies."""
        return {"host": self.settings.host, "port": self.settings.port}


def serve_on(address: str, served: Served, *, quiet: bool = False) -> None:
    """Serve until SIGINT or SIGTERM; accepted requests then get the grace time."""
    need("ray-serve", "starr serve --ray")
    replicas, settings = served.replicas, served.settings
    check_port(address, settings)
    from starr.cluster import front

    os.environ.setdefault(front.VARIABLE, front.IMPORT_PATH)  # inherited by a Ray that is started here
    size = Size(address, replicas.most or replicas.least, replicas.gpus, replicas.cpus)
    with connect(size) as (ray, _), catch_signals() as stop:  # in this order: Ray has handlers of its own
        serve: Any = import_module("ray.serve")
        logging.getLogger("ray.serve").setLevel(logging.CRITICAL)
        start_serve(ray, serve, served.http)
        try:
            deploy(serve, served, stop)
            if not quiet and not stop.is_set():
                count = f"{replicas.least} to {replicas.most}" if replicas.most else str(replicas.least)
                print(f"listening on http://{settings.host}:{settings.port}, replicas: {count}", file=sys.stderr)
            stop.wait()
        finally:
            withdraw(serve, settings.grace if address == LOCAL else 0.0)


def check_port(address: str, settings: Settings) -> None:
    """Raise in one line where a Ray of our own could not listen; its own proxy only tries again and again."""
    if settings.port == 0:
        raise InputError("--port must not be 0 with --ray.", hint="Ray Serve needs a fixed port.", param="port")
    if address == LOCAL:
        from starr.server.start import listen

        listen(settings).close()


def start_serve(ray: Any, serve: Any, http: dict[str, Any]) -> None:
    """Start Ray Serve; where its proxy does not come up in a minute, wait again: Ray restarts it."""
    for left in reversed(range(TRIES)):
        try:
            serve.start(http_options=http)
            return
        except (TimeoutError, ray.exceptions.RayError) as error:
            if not left:
                raise WorkError(f"Ray Serve did not start: {error}") from None


@contextmanager
def catch_signals() -> Iterator[threading.Event]:
    """Give an event that the first SIGINT or SIGTERM sets; the second SIGINT interrupts at once."""
    stop = threading.Event()

    def note(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def deploy(serve: Any, served: Served, stop: threading.Event) -> None:
    """Start the replicas and wait until they are up; one line where they cannot be."""
    target = serve.RunTarget(application(served.arguments), name=NAME, route_prefix="/")
    serve.run_many([target], wait_for_applications_running=False)
    while not stop.wait(0.2):
        state = serve.status().applications[NAME]
        if state.status == "RUNNING":
            return
        if state.status in ("DEPLOY_FAILED", "UNHEALTHY"):
            messages = [state.message, *(part.message for part in state.deployments.values())]
            raise WorkError(f"The replicas cannot be started: {find_reason(messages)}")


def find_reason(messages: list[str]) -> str:
    """Find the last line among the tracebacks that says what is wrong."""
    lines = [line.strip() for message in messages for line in message.splitlines() if line.strip()]
    ours = [line.partition(": ")[2] for line in lines if line.startswith("starr.") and ": " in line]
    return (ours or lines or ["no reason was given."])[-1]


def withdraw(serve: Any, seconds: float) -> None:
    """Accept nothing new and let the replicas finish within the grace time."""
    end = monotonic() + seconds
    serve.delete(NAME, _blocking=False)
    while NAME in serve.status().applications and monotonic() < end:
        sleep(0.1)


def make_config(served: Served) -> str:
    """Make the text of a file for ``serve deploy``; it holds no key."""
    need("ray-serve", "--write-config")
    yaml: Any = import_module("yaml")
    arguments = replace(served, settings=replace(served.settings, api_key=None)).arguments
    del arguments["replicas"], arguments["settings"]["api_key"]
    deployments = [make_options(served.replicas, served.settings)]
    app = {"name": NAME, "route_prefix": "/", "import_path": IMPORT_PATH, "args": arguments, "deployments": deployments}
    text: str = yaml.safe_dump({"http_options": served.http, "applications": [app]}, sort_keys=False)
    return text


def write_config(path: Path, served: Served) -> None:
    """Write a file for ``serve deploy``."""
    path.write_text(make_config(served), encoding="utf8")
