import pytest

from starr.errors import LoadError
from starr.model.families import FAMILIES, REFUSED, find_family


def test_architecture_decides():
    assert find_family({"architectures": ["LLaDAModelLM"], "model_type": "llada"}) is FAMILIES["llada"]
    assert find_family({"architectures": ["DreamModel"]}) is FAMILIES["dream"]


@pytest.mark.parametrize("name", [*REFUSED, "GPT2LMHeadModel"])
def test_others_are_refused_by_name_in_one_line(name):
    with pytest.raises(LoadError) as caught:
        find_family({"architectures": [name], "model_type": "llada"})
    message = str(caught.value)
    assert name in message
    assert REFUSED.get(name, "") in message
    assert "Supported: LLaDAModelLM" in message
    assert "\n" not in message


@pytest.mark.parametrize("config", [{}, *({"architectures": value} for value in ([], None, "DreamModel"))])
def test_no_architecture(config):
    with pytest.raises(LoadError, match="names no architecture"):
        find_family(config)
