"""What is one prompt, what is a list of them, and what is neither."""

import pytest

from starr.decode.prompts.prepare import is_many
from starr.errors import InputError


@pytest.mark.parametrize(
    ("prompt", "many"),
    [
        ("text", False),
        ([1, 2, 3], False),
        ([{"role": "user", "content": "hi"}], False),
        (["one", "two"], True),
        (["one", [1, 2]], True),
        ([], True),
    ],
)
def test_lists_of_prompts_are_told_from_prompts(prompt, many):
    assert is_many(prompt) == many


@pytest.mark.parametrize("prompt", [7, b"bytes", {"role": "user"}, [1, "two"], [True], [None]])
def test_what_is_no_prompt_is_one_line(prompt):
    with pytest.raises(InputError, match=r"prompt is text|must hold prompts") as caught:
        is_many(prompt)
    assert "\n" not in str(caught.value)
