"""What all tests share."""

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the first example of a test may import or compile, and the machine may be slow. The same examples in
# every run.
settings.register_profile(
    "onlooker", max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("onlooker")

# Tests side by side have a core each: more threads would only wait for one another. Tests of threads say how many.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("ONLOOKER_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every command that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

STARTS_A_CLUSTER = {"onlooker.clusters.ray_parts.RayParts"}
"""Examples in docstrings that take as long as the tests marked `slow`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name in STARTS_A_CLUSTER:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Leave the thousands of tests themselves out of garbage collections, which some commands ask for often."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the real data."""
    return Path(__file__).parent / "data"
