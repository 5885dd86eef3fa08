"""What all tests share."""

import gc
import os
import signal
import sys
import time
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


FIRST = (
    "tests/observers/test_tracking.py",
    "tests/diagnosis/test_diagnose.py",
    "tests/observers/earlier/test_bayesian_icb.py",
    "tests/observers/test_dynamic_imitation.py",
)
"""Files that go first: each needs other kernels, so that workers side by side do not compile the same ones."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(FIRST)))
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


@pytest.fixture(scope="session", autouse=True)
def _files_of_this_machine():
    """Files that a test has just written are waited for no longer than the clock that stamps them here may take."""
    # Not at the top: the numbers of threads above must be set before NumPy is imported.
    from onlooker.formats import places

    if sys.platform == "linux":
        # 5 is the coarse clock, which Python has no name for.
        places._TICK = min(places._TICK, 1.25 * time.clock_getres(5))
