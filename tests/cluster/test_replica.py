"""What Ray Serve is told, without starting it: options from the engine's bounds, a file that holds no secret."""

import pytest

from starr.cli.main import main
from starr.cluster.replica import SPARE, Replicas, application, make_options, write_arguments
from starr.cluster.serve import find_reason
from starr.cluster.worker import ModelSource
from starr.errors import InputError
from starr.server.settings import Settings

yaml = pytest.importorskip("yaml")
pytest.importorskip("ray.serve", reason="needs the extra [ray-serve]")


def test_a_replica_takes_what_its_engines_decode_and_queue():
    options = make_options(Replicas(2, cpus=4.0), Settings(max_rows=8, max_queue=10, timeout=90.0))
    assert options["max_ongoing_requests"] == 8 * 4 + 10 + SPARE
    assert options["max_queued_requests"] == 10
    assert options["graceful_shutdown_timeout_s"] == 90.0
    assert options["num_replicas"] == 2
    assert make_options(Replicas(), Settings(engines=3, max_rows=8, max_queue=1))["max_ongoing_requests"] == 25 + SPARE


def test_replicas_are_fixed_or_chosen_by_load():
    assert "autoscaling_config" not in make_options(Replicas(2, 2), Settings())
    options = make_options(Replicas(1, 4), Settings(max_rows=8))
    assert "num_replicas" not in options
    assert options["autoscaling_config"] == {"min_replicas": 1, "max_replicas": 4, "target_ongoing_requests": 8}


@pytest.mark.parametrize("wrong", [{"least": 0}, {"least": 3, "most": 2}, {"cpus": 0.0}, {"gpus": -1.0}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(InputError):
        Replicas(**wrong)


def test_a_file_for_serve_deploy_is_what_ray_takes_and_gives_the_same_server(tmp_path, capsys):
    from ray.serve.schema import ServeDeploySchema

    path = tmp_path / "serve.yaml"
    flags = ["--replicas", "2", "--max-rows", "5", "--strategy", "threshold:tau=0.5", "--served-model-name", "m"]
    flags += ["--port", "9000", "--api-key", "secret", "--allow-host", "here", "--write-config", str(path)]
    assert main(["serve", "--ray", "--model", "/no/such", *flags]) == 0
    assert f"wrote {path}" in capsys.readouterr().err
    text = path.read_text()
    assert "secret" not in text
    body = yaml.safe_load(text)
    (app,) = ServeDeploySchema.model_validate(body).applications
    assert body["http_options"] == {"host": "127.0.0.1", "port": 9000}
    assert app.deployments[0].num_replicas == 2
    assert app.deployments[0].max_ongoing_requests == 5 + 256 + SPARE
    assert app.args["settings"]["defaults"]["strategy"] == "threshold:tau=0.5"
    bound = application(app.args)
    assert bound._bound_deployment.name == app.deployments[0].name == "starr"


def test_the_key_comes_from_the_environment_where_it_is_not_given(monkeypatch):
    arguments = write_arguments(ModelSource("/no/such"), None, Replicas(), Settings(cors=("http://here",)))
    monkeypatch.setenv("STARR_API_KEY", "")  # an empty one is refused: it is read
    del arguments["settings"]["api_key"]
    with pytest.raises(InputError, match="must not be empty"):
        application(arguments)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--replicas", "2"], "--replicas needs --ray."),
        (["--write-config", "x"], "--write-config needs --ray."),
        (["--ray", "--replicas", "0"], "--replicas must be"),
        (["--ray", "--replicas", "3", "--max-replicas", "2"], "--max-replicas must be"),
        (["--ray", "--port", "0"], "--port must not be 0 with --ray."),
    ],
)
def test_wrong_flags_are_refused_in_one_line(flags, line, capsys):
    assert main(["serve", *flags]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"starr: {line}")
    assert told.count("\n") == 1


def test_the_reason_is_our_own_line_of_a_traceback():
    traceback = "Traceback\n  File x\nstarr.server.http.service.Loading: The model cannot be loaded: no folder.\n\n"
    assert find_reason(["Deploying failed.", traceback]) == "The model cannot be loaded: no folder."
    assert find_reason(["It is unhealthy."]) == "It is unhealthy."
    assert find_reason([]) == "no reason was given."
