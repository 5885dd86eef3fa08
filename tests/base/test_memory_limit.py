"""A log that does not fit below the limit is fitted, judged and followed below it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onlooker.base.memory_limit import LIBRARIES
from onlooker.formats import write_parts
from onlooker.logs.log import BanditLog

LIMIT = 500_000_000
ARMS, FEATURES = 100, 25
FILES = {"first.parquet": 3_000, "second.parquet": 8_000, "third.parquet": 11_000}
"""Rounds of each, of 10 kB: together four times what libraries leave of the limit, and too many to be loaded."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"),
]

WORK = """
import json, re, sys
from pathlib import Path
from onlooker import SuffixImitation, TrackingObserver, burn_in_sweep, diagnose, scan_log
from onlooker.observers.tracking import TS

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

folder, limit, work = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
scan = scan_log(folder / "*.parquet", memory_limit=limit)
found = {}
if work == "fit":
    found["fit"] = SuffixImitation(burn_in="auto").fit(scan).theta_.tolist()
    found["sweep"] = burn_in_sweep(scan, [0.0, 0.9]).thetas[0].tolist()
elif work == "diagnose":
    found["verdict"] = diagnose(scan).verdict
else:
    files = [folder / "first.parquet", folder / "second.parquet"]
    observer = TrackingObserver(exploration=TS(1.0))
    observer.fit(scan_log(files[:1], memory_limit=limit))
    before = peak()
    found["theta"] = observer.fit(scan_log(files, memory_limit=limit)).theta_.tolist()
    found["grown"] = peak() - before
print(json.dumps({"peak": peak(), **found}))
"""


def theta():
    return np.linspace(-1, 1, FEATURES).astype(np.float32)


def parts(file, n_rounds):
    for first in range(0, n_rounds, 400):
        rng = np.random.default_rng([file, first])
        n = min(400, n_rounds - first)
        X = rng.standard_normal((n, ARMS, FEATURES), dtype=np.float32)
        yield BanditLog.from_dense(X, (X @ theta() + rng.gumbel(size=(n, ARMS))).argmax(axis=1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    for number, (name, n_rounds) in enumerate(FILES.items()):
        write_parts(parts(number, n_rounds), folder / name)
    assert sum(path.stat().st_size for path in folder.iterdir()) > 4.2 * (LIMIT - LIBRARIES)
    return folder


def run(folder, work, threads=2):
    command = [sys.executable, "-c", WORK, str(folder), str(LIMIT), work]
    environment = {**os.environ, "ONLOOKER_THREADS": str(threads)}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(ran.stdout)
    assert found["peak"] < LIMIT
    return found


def test_fit_and_sweep(folder):
    found = run(folder, "fit")
    np.testing.assert_allclose(found["fit"], theta(), atol=0.05)
    np.testing.assert_allclose(found["sweep"], theta(), atol=0.05)


def test_diagnose(folder):
    assert run(folder, "diagnose")["verdict"] == "stable"


def test_tracking_takes_no_more_for_a_longer_log(folder):
    # With one thread nothing is read ahead: how much lies in memory together is not up to how busy the machine is.
    found = run(folder, "track", threads=1)
    # The rounds that decide on a family are held; 8,000 more of them would take 80 MB.
    assert found["grown"] < 20e6
    recovered = np.array(found["theta"])
    assert recovered @ theta() > 0.99 * np.linalg.norm(recovered) * np.linalg.norm(theta())
