"""One Ray for all tests of this folder: two CPUs, a small object store, a folder of its own, stopped at the end."""

import os
import tempfile

import pytest

import starr
from starr.cluster.front import IMPORT_PATH, VARIABLE
from starr.cluster.start import LOCAL, Size, make_arguments, start_ray
from tests.deploy.proxy import free_port
from tests.model.tiny import LLADA_CONFIG, write_llada

ray = pytest.importorskip("ray", reason="needs the extra [ray]")
os.environ.update({"RAY_enable_worker_prestart": "0", "RAY_prestart_worker_first_driver": "0"})
os.environ.update({"RAY_metrics_report_interval_ms": "1000"})
os.environ[VARIABLE] = IMPORT_PATH  # as in the environment of every node of a cluster


@pytest.fixture(scope="session")
def ray_folder():
    """A short path, because Ray makes sockets in it."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.fixture(scope="session")
def own_ray(ray_folder):
    small = {"num_cpus": 4, "object_store_memory": 80 << 20, "_temp_dir": ray_folder}  # two workers, two replicas
    start_ray(ray, LOCAL, make_arguments(Size()) | small)
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The folder of a LLaDA checkpoint with random weights."""
    config = LLADA_CONFIG | {"max_sequence_length": 512}
    return str(write_llada(tmp_path_factory.mktemp("cluster") / "tiny", config=config))


@pytest.fixture(scope="session")
def model(tiny):
    return starr.load(tiny, dtype="float32")


@pytest.fixture(scope="session")
def port():
    """Of Ray Serve's proxy, which stays where it was started first."""
    return free_port()


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """A file of twelve problems in the package's own form, of different lengths."""
    from starr.evals.tasks import word_problems
    from starr.evals.tasks.problem import dump

    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text(dump(word_problems.load()[:12]))
    return str(path)
