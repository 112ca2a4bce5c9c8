import errno
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import errors

from starr.errors import LoadError
from starr.model.files import hub
from starr.model.files.hub import locate


class Answer:
    """As much of an HTTP response as the hub's errors read."""

    headers: dict[str, str] = {}  # noqa: RUF012
    request = None
    status_code = 404


def failing(error):
    def snapshot_download(*_args, **_kwargs):
        raise error

    return snapshot_download


@pytest.fixture
def patch(monkeypatch):
    return lambda function: monkeypatch.setattr(huggingface_hub, "snapshot_download", function)


def test_a_folder_is_itself(tmp_path):
    assert locate(tmp_path) == (tmp_path, tmp_path.name)
    assert locate(str(tmp_path)) == (tmp_path, tmp_path.name)


@pytest.mark.parametrize("source", [None, "bundled"])
def test_bundled_model(monkeypatch, tmp_path, source):
    monkeypatch.setattr(hub, "BUNDLED_FOLDER", tmp_path / "absent")
    with pytest.raises(LoadError, match=r"bundled is not in .*absent"):
        locate(source)
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setattr(hub, "BUNDLED_FOLDER", tmp_path)
    assert locate(source) == (tmp_path, "bundled")


def test_siblings_lie_beside_the_first_and_share_what_it_knows(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "BUNDLED_FOLDER", tmp_path / "bundled")
    with pytest.raises(LoadError, match=r"bundled-blocks is not in .*bundled_blocks"):
        locate("bundled-blocks")
    folder = tmp_path / "bundled_blocks"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert locate("bundled-blocks") == (folder, "bundled-blocks")
    assert hub.shared_folder(folder) == hub.shared_folder(tmp_path / "bundled") == tmp_path / "bundled"
    other = tmp_path / "elsewhere" / "bundled_blocks"
    assert hub.shared_folder(other) == other


@pytest.mark.parametrize("source", ["./nowhere", "/no/such/folder", "word", Path("owner/name"), "a/b/c", "", "../x"])
def test_what_is_neither_folder_nor_id(source, patch):
    patch(failing(AssertionError("the hub must not be asked")))
    with pytest.raises(LoadError, match=r"There is no folder|is empty"):
        locate(source)


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "model.safetensors").write_text("")
    with pytest.raises(LoadError, match=r"is a file. Give the folder"):
        locate(tmp_path / "model.safetensors")


def test_only_files_that_cannot_run_are_fetched(tmp_path, patch):
    asked = {}

    def snapshot_download(repository, **options):
        asked.update(options, repository=repository)
        return str(tmp_path)

    patch(snapshot_download)
    assert locate("GSAI-ML/LLaDA-8B-Base") == (tmp_path, "GSAI-ML/LLaDA-8B-Base")
    assert asked["repository"] == "GSAI-ML/LLaDA-8B-Base"
    kept = ["config.json", "model-00001-of-00006.safetensors", "model.safetensors.index.json", "vocab.json"]
    offered = [*kept, "modeling_llada.py", "pytorch_model.bin", "x.pt", "README.md", "sub/model.safetensors"]
    chosen = huggingface_hub.utils.filter_repo_objects(
        offered, allow_patterns=asked["allow_patterns"], ignore_patterns=asked["ignore_patterns"]
    )
    assert list(chosen) == kept


@pytest.mark.parametrize(
    "error",
    [
        errors.LocalEntryNotFoundError("no network"),
        errors.OfflineModeIsEnabled("offline"),
        ConnectionError("reset"),
        TimeoutError("slow"),
        RuntimeError("a network library's own error"),
    ],
)
def test_unreachable_hub_names_the_offline_ways(patch, error):
    patch(failing(error))
    with pytest.raises(LoadError) as caught:
        locate("GSAI-ML/LLaDA-8B-Base")
    message = str(caught.value)
    assert "The hub could not be reached for GSAI-ML/LLaDA-8B-Base" in message
    assert all(way in message for way in ("folder", "HF_HOME", "HF_HUB_OFFLINE=1"))
    assert "\n" not in message


def test_really_offline(monkeypatch, tmp_path):
    """The hub client itself, told to stay offline, with an empty cache."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(LoadError, match="The hub could not be reached"):
        locate("starr-test-owner/no-such-model")


def test_a_cached_model_is_found_offline(monkeypatch, tmp_path):
    revision = "0" * 40
    snapshot = tmp_path / "models--owner--name" / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (tmp_path / "models--owner--name" / "refs").mkdir()
    (tmp_path / "models--owner--name" / "refs" / "main").write_text(revision)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert locate("owner/name") == (snapshot, "owner/name")


def test_unknown_and_gated_repositories(patch):
    patch(failing(errors.RepositoryNotFoundError("404", response=Answer())))
    with pytest.raises(LoadError, match="The hub has no model 'a/b', or it is private"):
        locate("a/b")
    patch(failing(errors.GatedRepoError("403", response=Answer())))
    with pytest.raises(LoadError, match="a/b is gated"):
        locate("a/b")


def test_full_disk(patch):
    patch(failing(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(LoadError, match=r"The disk is full. Free space, or set HF_HOME"):
        locate("a/b")
