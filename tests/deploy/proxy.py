"""nginx with the configuration of ``deploy/``, in front of servers on this machine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def free_port():
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def wait_for(test, seconds=180.0):
    """Wait for something that another process brings about."""
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def answers(url):
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def proxy(*addresses):
    """The address of nginx before servers at ``host:port``; only names and the port differ from the file."""
    port = free_port()
    text = (DEPLOY / "nginx.conf").read_text().replace("listen 8080", f"listen 127.0.0.1:{port}")
    for number, address in enumerate(addresses, start=1):
        text = text.replace(f"starr-{number}:8000", address)
    text = re.sub(r"worker_processes auto;", "worker_processes 1;", text)
    with tempfile.TemporaryDirectory(prefix="nginx") as folder:
        conf = Path(folder) / "nginx.conf"
        conf.write_text(("user root;\n" if os.getuid() == 0 else "") + text)
        child = subprocess.Popen([NGINX, "-p", folder, "-c", str(conf), "-g", "daemon off;"])
        try:
            wait_for(lambda: answers(f"http://127.0.0.1:{port}/version"))
            yield f"http://127.0.0.1:{port}"
        finally:
            child.terminate()
            child.wait(timeout=120)


class ServerProcess:
    """``starr serve`` in a process of its own, at a port that stays the same when it is started again."""

    def __init__(self, model, *more):
        self.port, self.model, self.more = free_port(), model, more
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.address}"

    def start(self):
        command = [sys.executable, "-m", "starr.cli.main", "serve", "--model", self.model, "--port", str(self.port)]
        self.child = subprocess.Popen([*command, "--quiet", *self.more])
        return self

    def ready(self):
        wait_for(lambda: answers(f"{self.url}/health/ready"))
        return self

    def kill(self):
        self.child.kill()
        self.child.wait()

    def drain(self):
        self.child.send_signal(signal.SIGTERM)

    def metric(self, name):
        lines = httpx.get(f"{self.url}/metrics", timeout=120).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))
