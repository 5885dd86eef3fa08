"""A log of four times the room that a limit leaves is fitted, judged and followed below the limit."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onlooker.formats import write_parts
from onlooker.formats.memory import LIBRARIES
from onlooker.log import BanditLog

LIMIT = 400_000_000
ARMS, FEATURES = 100, 25
ROUNDS = 4 * (LIMIT - LIBRARIES) // (4 * ARMS * FEATURES)

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")

WORK = """
import json, re, sys
from pathlib import Path
from onlooker import SuffixImitation, TrackingObserver, burn_in_sweep, diagnose, scan_log
from onlooker.tracking import Lapse

scan = scan_log(sys.argv[1], memory_limit=int(sys.argv[2]))
works = {
    "fit": lambda: SuffixImitation(burn_in="auto").fit(scan).theta_.tolist(),
    "sweep": lambda: burn_in_sweep(scan, [0.0, 0.9]).thetas[0].tolist(),
    "diagnose": lambda: diagnose(scan).verdict,
    "track": lambda: TrackingObserver(exploration=Lapse(0.1)).fit(scan).theta_.tolist(),
}
found = {name: works[name]() for name in sys.argv[3].split()}
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
print(json.dumps({"peak": peak, **found}))
"""


def theta():
    return np.linspace(-1, 1, FEATURES).astype(np.float32)


def parts():
    for seed, start in enumerate(range(0, ROUNDS, 400)):
        rng = np.random.default_rng(seed)
        n = min(400, ROUNDS - start)
        X = rng.standard_normal((n, ARMS, FEATURES), dtype=np.float32)
        yield BanditLog.from_dense(X, (X @ theta() + rng.gumbel(size=(n, ARMS))).argmax(axis=1))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "log.parquet"
    write_parts(parts(), path)
    assert path.stat().st_size > 3.9 * (LIMIT - LIBRARIES)
    return path


@pytest.mark.parametrize("work", ["fit sweep", "diagnose", "track"])
def test_peak_memory_stays_below_the_limit(path, work):
    command = [sys.executable, "-c", WORK, str(path), str(LIMIT), work]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["peak"] < LIMIT
    if work == "diagnose":
        assert found["diagnose"] == "settled"
    if work == "fit sweep":
        np.testing.assert_allclose(found["fit"], theta(), atol=0.05)
        np.testing.assert_allclose(found["sweep"], theta(), atol=0.05)
    if work == "track":
        # In units of its own: directions are compared.
        recovered = np.array(found["track"])
        assert recovered @ theta() > 0.99 * np.linalg.norm(recovered) * np.linalg.norm(theta())
