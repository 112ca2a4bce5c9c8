"""The command line in this process, on a model of random weights that is small enough to decode in an instant."""

from dataclasses import dataclass

import pytest

from starr.cli.main import main
from tests.model.tiny import LLADA_CONFIG, write_llada


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line of an error."""
        assert self.err.count("\n") == 1, self.err
        return self.err.strip()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The folder of a LLaDA checkpoint with random weights and a context of 256."""
    return str(write_llada(tmp_path_factory.mktemp("tiny"), config=LLADA_CONFIG | {"max_sequence_length": 256}))


@pytest.fixture
def starr(capsys):
    """Run ``starr ARGUMENTS`` and give its exit code and output."""

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture
def run(starr, tiny):
    """Run a decoding verb on the tiny model with a canvas of 12."""
    return lambda verb, *rest: starr(verb, *rest, "--model", tiny, "--max-tokens", 12)
