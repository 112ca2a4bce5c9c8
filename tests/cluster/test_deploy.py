"""The file of ``--write-config`` deployed by Ray's own command and scaled by load; a replica whose engine is stuck."""

import itertools
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from starr.cli.main import main
from starr.cluster.replica import NAME, Replicas, make_deployment
from starr.server.settings import Settings
from tests.cluster.held import Held
from tests.cluster.serving import PATIENCE, metric, replicas, runs
from tests.deploy.load import answer, asks, client_of, expected
from tests.deploy.proxy import answers, wait_for

yaml = pytest.importorskip("yaml")
serve = pytest.importorskip("ray.serve", reason="needs the extra [ray-serve]")
QUICK = {"upscale_delay_s": 1.0, "downscale_delay_s": 3.0, "look_back_period_s": 2.0, "metrics_interval_s": 1.0}
BODY = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}


@pytest.fixture
def scaled(own_ray, tiny, port, tmp_path):
    """One to two replicas, as `serve run` starts them from the file, with quicker scaling written into it."""
    path = tmp_path / "serve.yaml"
    flags = ["--replicas", "1", "--max-replicas", "2", "--engines", "1", "--max-rows", "1", "--port", str(port)]
    flags += ["--served-model-name", "tiny", "--dtype", "float32", "--write-config", str(path)]
    assert main(["serve", "--ray", "--model", tiny, *flags]) == 0
    body = yaml.safe_load(path.read_text())
    body["applications"][0]["deployments"][0]["autoscaling_config"] |= QUICK
    path.write_text(yaml.safe_dump(body))
    address = own_ray.get_runtime_context().gcs_address
    command = [sys.executable, "-c", "from ray.serve.scripts import cli; cli()", "run", "--non-blocking"]
    subprocess.run([*command, "--address", address, str(path)], check=True, timeout=PATIENCE)
    url = f"http://127.0.0.1:{port}"
    wait_for(lambda: answers(f"{url}/health/ready"), PATIENCE)
    yield url
    serve.delete(NAME)


def test_a_file_deployed_by_rays_own_command_answers_and_grows_and_shrinks_with_the_load(own_ray, scaled, model):
    asked = asks(14, max_tokens=32)
    right = expected(model, asked)
    client, wrong = client_of(scaled), []
    enough = threading.Event()

    def ask(ask):
        found = answer(client, ask)
        wrong.extend([] if found == right[ask] else [found])

    def go_on(_):
        for each in itertools.takewhile(lambda _: not enough.is_set(), itertools.cycle(asked)):
            ask(each)

    ask(asked[0])
    assert (wrong, len(replicas(own_ray))) == ([], 1)
    with ThreadPoolExecutor(6) as threads:
        load = threads.map(go_on, range(6))
        try:
            wait_for(lambda: len(replicas(own_ray)) == 2, PATIENCE)
        finally:
            enough.set()
        list(load)
    wait_for(lambda: len(replicas(own_ray)) == 1, PATIENCE)
    ask(asked[1])
    assert wrong == []


@pytest.fixture
def held(own_ray, tiny, port, tmp_path):
    """One replica whose model does as files say; its address and the files."""
    files = Held(tiny, str(tmp_path))
    serve.start(http_options={"port": port})
    settings = Settings(port=port, engines=1, max_rows=1, max_queue=4, stuck=5.0, grace=1.0)
    serve.run(make_deployment(files.load, Replicas(1), settings), name=NAME, route_prefix="/")
    yield f"http://127.0.0.1:{port}", files
    files.go_on()
    serve.delete(NAME)


def test_a_replica_with_a_stuck_engine_is_replaced_and_its_clients_are_told(own_ray, held):
    """Its thread never comes back: streams and answers end with an error, and the process goes all the same."""
    url, files = held
    ((name, process),) = replicas(own_ray).items()
    post, body = f"{url}/v1/chat/completions", BODY | {"max_tokens": 400, "block_length": 4}
    with httpx.stream("POST", post, json=body | {"stream": True}, timeout=PATIENCE) as told:
        lines = told.iter_lines()
        next(lines)
        wait_for(lambda: files.forwards() > 2, PATIENCE)
        files.hold(PATIENCE, process)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(httpx.post, post, json=body, timeout=PATIENCE)
            events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
            refused = waiting.result()
    assert "in one step for" in events[-1]["error"]["message"]
    assert refused.status_code in (200, 503)  # 200 where the next replica was asked
    wait_for(lambda: name not in replicas(own_ray) and answers(f"{url}/health/ready"), PATIENCE)
    answer = httpx.post(post, json=BODY, timeout=PATIENCE)
    assert answer.json()["usage"]["completion_tokens"] == 4
    assert metric(url, "vllm:num_requests_running") == 0
    wait_for(lambda: not runs(process), PATIENCE)
