"""What is said about a memory limit that cannot be."""

import pytest

from onlooker import InputError
from onlooker.base.memory_limit import as_bytes


@pytest.mark.parametrize(("text", "size"), [("1e3MB", 10**9), ("1E9", 10**9), ("2.GB", 2 * 10**9), (".6gb", 6 * 10**8)])
def test_numbers_in_every_spelling(text, size):
    assert as_bytes(text) == size


@pytest.mark.parametrize("limit", [-1, "-1MB", "-0", "1e999MB", "9" * 400, "1e", "e3MB", "MB", "", True, 8.5, None])
def test_no_size_at_all(limit):
    with pytest.raises(InputError, match="pass bytes, or text such as '800MB'") as caught:
        as_bytes(limit)
    assert repr(limit) in str(caught.value)


@pytest.mark.parametrize(
    ("limit", "said"), [(0, "is 0 bytes"), (1, "is 1 byte:"), ("10kB", "is 10kB"), ("0MB", "is 0MB")]
)
def test_too_small_is_said_as_it_was_given(limit, said):
    with pytest.raises(InputError, match=said):
        as_bytes(limit)
