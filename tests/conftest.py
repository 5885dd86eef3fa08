"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: the first example of a test may import or compile. The same examples in every run.
settings.register_profile("onlooker", deadline=None, derandomize=True)
settings.load_profile("onlooker")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the real data."""
    return Path(__file__).parent / "data"
