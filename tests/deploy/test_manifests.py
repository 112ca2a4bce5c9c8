"""Files of ``deploy/``: valid by their schemas, and in step with the command line."""

import re
import shutil
import subprocess

import pytest
import yaml
from typer.testing import CliRunner

from starr.cli.app import app
from tests.deploy.proxy import DEPLOY, NGINX

MANIFESTS = [
    pytest.param(body, id=f"{path.stem}-{body['kind']}")
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for body in yaml.safe_load_all(path.read_text())
]


@pytest.fixture(scope="module")
def flags():
    return set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["serve", "--help"]).stdout))


@pytest.mark.parametrize("body", MANIFESTS)
def test_a_manifest_follows_its_schema(body):
    validate = pytest.importorskip("kubernetes_validate").validate
    validate(body, "1.30", strict=True)


def test_a_wrong_manifest_would_be_found():
    module = pytest.importorskip("kubernetes_validate")
    body = yaml.safe_load((DEPLOY / "kubernetes" / "server.yaml").read_text().split("---")[0])
    body["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(module.ValidationError):
        module.validate(body, "1.30", strict=True)


def test_pods_are_asked_whether_they_are_ready(flags):
    deployment = next(yaml.safe_load_all((DEPLOY / "kubernetes" / "server.yaml").read_text()))
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert set(container["args"][::2]) <= flags
    grace = float(container["args"][container["args"].index("--grace") + 1])
    assert pod["terminationGracePeriodSeconds"] > grace + 5 + 5  # the sleep before, and the server's own margin


def test_the_scaler_reads_a_metric_that_the_rule_makes_of_ours():
    scaler, rules = yaml.safe_load_all((DEPLOY / "kubernetes" / "scale.yaml").read_text())
    (rule,) = yaml.safe_load(rules["data"]["config.yaml"])["rules"]
    assert scaler["spec"]["metrics"][0]["pods"]["metric"]["name"] == rule["name"]["as"]
    source = (DEPLOY.parent / "src" / "starr" / "server" / "metrics.py").read_text()
    assert '"num_requests_waiting"' in source
    assert rule["seriesQuery"].startswith("vllm:num_requests_waiting")


def test_the_container_uses_files_and_flags_that_exist(flags):
    text = (DEPLOY / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (.*)$", text, flags=re.M):
        assert all((DEPLOY.parent / name).exists() for name in line.split()[:-1])
    entry = re.search(r"^ENTRYPOINT (.*)$", text, flags=re.M).group(1)
    assert set(re.findall(r"--[a-z-]+", entry)) <= flags
    assert re.search(r"^ARG BASE=", text, flags=re.M)


def test_compose_names_the_servers_that_nginx_asks(flags):
    body = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    asked = re.findall(r"server ([\w-]+):8000", (DEPLOY / "nginx.conf").read_text())
    assert set(asked) == set(body["services"]) - {"proxy"}
    for name in asked:
        assert set(body["services"][name]["command"][::2]) <= flags
    if shutil.which("docker-compose"):
        command = ["docker-compose", "-f", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
        subprocess.run(command, check=True)


@pytest.mark.skipif(NGINX is None, reason="needs nginx")
def test_nginx_accepts_its_configuration(tmp_path):
    text = (DEPLOY / "nginx.conf").read_text().replace("starr-1", "127.0.0.1").replace("starr-2", "127.0.0.2")
    (tmp_path / "nginx.conf").write_text(text)
    done = subprocess.run(
        [NGINX, "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
