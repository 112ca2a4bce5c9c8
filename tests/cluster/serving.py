"""What the tests of replicas ask of Ray and of the server."""

from __future__ import annotations

import os
from pathlib import Path

import httpx

PATIENCE = float(os.environ.get("STARR_TEST_PATIENCE", "300"))  # seconds, on a machine that does other things too


def replicas(ray):
    """The process of every replica that runs, by its name."""
    names = [each["name"] for each in ray.util.list_named_actors(all_namespaces=True)]
    found = {}
    for name in (name for name in names if name.startswith("SERVE_REPLICA")):
        try:
            actor = ray.get_actor(name, namespace="serve")
            found[name] = ray.get(actor.__ray_call__.remote(lambda self: os.getpid()), timeout=60)
        except (ValueError, ray.exceptions.RayError):
            continue
    return found


def metric(url, name):
    """The sum of a figure over its labels."""
    lines = httpx.get(f"{url}/metrics", timeout=60).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def runs(process):
    """Whether a process is there and not only its exit code."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
