"""A worker without a model, that may fail for good. Imports nothing heavy: its process starts quickly."""

from contextlib import suppress
from pathlib import Path

from starr.cluster.worker import WorkerProcess
from starr.errors import LoadError


class Shy(WorkerProcess):
    """No model; where the folder has fewer files than allowed, it makes one and fails."""

    def __init__(self, loading, folder, failures):
        self.folder, self.failures = Path(folder), failures
        super().__init__(loading)

    def begin(self, loading):
        for number in range(self.failures):
            with suppress(FileExistsError):
                (self.folder / str(number)).touch(exist_ok=False)
                raise LoadError("There is no\nmodel.")

    def decoder(self, key):
        return lambda places: ((place, -place) for place in places)
