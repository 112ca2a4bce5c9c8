"""What a worker does with its chunk, without Ray; how Ray is started."""

import signal
import subprocess

import pytest

from starr.cluster.start import LOCAL, Size, start_ray
from starr.cluster.worker import Failure, ModelSource, PromptWorker, decode_all, gather
from starr.errors import InputError, WorkError
from starr.options import Options


def decoder(bad):
    def decode(places):
        for place in places:
            if place in bad:
                raise ValueError(f"no {place}")
            yield place, -place

    return decode


def test_one_bad_item_fails_alone():
    found = dict(decode_all(decoder({2}), [0, 1, 2, 3]))
    assert found == {0: 0, 1: -1, 2: Failure("ValueError: no 2"), 3: -3}


def test_results_go_together_but_none_is_kept_back():
    assert [len(part) for part in gather(iter([(i, i) for i in range(5)]), 1000.0)] == [5]
    assert [len(part) for part in gather(iter([(i, i) for i in range(3)]), 0.0)] == [1, 1, 1]
    assert list(gather(iter([]), 0.0)) == []


def test_a_worker_without_a_model_says_why():
    worker = PromptWorker(ModelSource("/no/such/folder"), ["Hello"], 1, Options())
    assert "/no/such/folder" in worker.ready()


def test_sizes_are_chosen_by_what_the_cluster_has():
    assert Size().fit({"CPU": 4.0}) == Size(workers=4, gpus=0.0)
    assert Size(cpus=2.0).fit({"CPU": 4.0}).workers == 2
    assert Size().fit({"CPU": 64.0, "GPU": 8.0}) == Size(workers=8, gpus=1.0)
    assert Size(workers=3, gpus=0.5).fit({"CPU": 1.0, "GPU": 8.0}) == Size(workers=3, gpus=0.5)


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"cpus": 0}, {"gpus": -1}, {"address": "ray://head:10001"}])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(InputError):
        Size(**wrong)


class Unwilling:
    """Plays Ray; it comes up after some tries."""

    def __init__(self, failures):
        self.failures, self.tries, self.ends, self.started = failures, 0, 0, []

    def init(self, **given):
        self.tries += 1
        if self.tries <= self.failures:
            self.started.append(subprocess.Popen(["sleep", "1000"]))
            raise RuntimeError("The current node timed out.\nMore of it.")

    def shutdown(self):
        self.ends += 1


def test_a_ray_that_does_not_come_up_is_started_again():
    ray = Unwilling(1)
    start_ray(ray, LOCAL, {})
    assert (ray.tries, ray.ends) == (2, 1)
    assert [child.wait(timeout=60) for child in ray.started] == [-signal.SIGKILL]
    with pytest.raises(WorkError, match=r"^Ray did not start: The current node timed out\.$"):
        start_ray(Unwilling(9), LOCAL, {})


def test_a_cluster_that_is_not_there_is_asked_once():
    ray = Unwilling(9)
    with pytest.raises(WorkError, match=r"There is no Ray cluster at head:6379 .*ray start --head"):
        start_ray(ray, "head:6379", {})
    assert ray.tries == 1
