"""What is one prompt, what is a list of them, and what is neither; whatever library holds them."""

import numpy as np
import pandas
import pytest
import torch

from starr.decode.prompts.given import read_one, read_prompts
from starr.errors import InputError

HI = {"role": "user", "content": "hi"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}
TABLE = pandas.DataFrame({"prompt": ["one", "two"]})


@pytest.mark.parametrize(
    ("given", "prompts", "many"),
    [
        ("text", ["text"], False),
        (np.str_("text"), ["text"], False),
        ([1, 2, 3], [[1, 2, 3]], False),
        (np.array([1, 2, 3]), [[1, 2, 3]], False),
        (torch.tensor([1, 2, 3]), [[1, 2, 3]], False),
        ([np.int64(1), np.int32(2)], [[1, 2]], False),
        ((1, 2), [[1, 2]], False),
        ([HI], [[HI]], False),
        ((HI,), [[HI]], False),
        ([PARTS], [[HI]], False),
        (["one", "two"], ["one", "two"], True),
        (("one", "two"), ["one", "two"], True),
        (np.array(["one", "two"]), ["one", "two"], True),
        (TABLE["prompt"], ["one", "two"], True),
        ((word for word in ("one", "two")), ["one", "two"], True),
        ({"a": "one", "b": "two"}.values(), ["one", "two"], True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]], True),
        (torch.tensor([[1, 2], [3, 4]]), [[1, 2], [3, 4]], True),
        (["one", [1, 2], [PARTS]], ["one", [1, 2], [HI]], True),
        ([], [], True),
    ],
)
def test_prompts_in_any_type(given, prompts, many):
    found = read_prompts(given)
    assert found == (prompts, many)
    ids = [token for prompt in found[0] if isinstance(prompt, list) for token in prompt if not isinstance(token, dict)]
    assert all(type(token) is int for token in ids)


@pytest.mark.parametrize(
    "given",
    [7, b"bytes", {"role": "user"}, [1, "two"], [True], [None], [1.5], TABLE, pandas.Series(["one", None]), [["a"]]],
)
def test_what_is_no_prompt_is_one_line(given):
    with pytest.raises(InputError) as caught:
        read_prompts(given)
    assert caught.value.param == "prompt"
    assert "\n" not in caught.value.message


def test_a_part_that_is_no_text_is_named():
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    with pytest.raises(InputError, match="image_url"):
        read_prompts([image])


def test_one_prompt_is_not_a_list_of_them():
    assert read_one(np.array([4, 5])) == [4, 5]
    with pytest.raises(InputError):
        read_one(["one"])
