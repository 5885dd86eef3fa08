"""Matrices of d x d count towards the memory limit: as many as the work takes, which is measured."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from onlooker import SuffixImitation, TrackingObserver, burn_in_sweep, diagnose, scan_log, write_log
from onlooker.base import memory_limit
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import LEAST, LIBRARIES, WIDEST, Room, as_bytes, check_work, square
from onlooker.base.threads import ordered_map
from onlooker.logs.log import BanditLog

MEASURE = """
import json, warnings
import numpy as np
from onlooker import UCB, SuffixImitation, TrackingObserver, burn_in_sweep, diagnose
from onlooker.logs.log import BanditLog
from onlooker.evaluation.peak_memory import peak_memory

warnings.simplefilter("ignore")
d = 400

def made(rounds, arms, d, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rounds, arms, d))
    scores = X @ rng.normal(size=d) / d**0.5 + noise * rng.gumbel(size=(rounds, arms))
    return BanditLog.from_dense(X, scores.argmax(axis=1))

few, easy = made(40, 2, d, 1.0), made(40, 8, d, 1e-3)
works = {
    "fit": (few, SuffixImitation(burn_in="naive").fit),
    "maximum likelihood": (few, SuffixImitation(burn_in="naive", l2=0.0, covariance="model").fit),
    "more rounds": (made(900, 2, d, 1.0), SuffixImitation(burn_in="naive").fit),
    "sweep": (few, lambda log: burn_in_sweep(log, [0.1, 0.5])),
    "diagnosis": (made(900, 2, d, 1.0), diagnose),
    "tracking": (easy, TrackingObserver(exploration=UCB(1.0)).fit),
    "families": (easy, TrackingObserver().fit),
    "state": (easy, lambda log: TrackingObserver(exploration=UCB(1.0)).fit(log).save("state.json")),
}
found = {}
for name, (log, work) in works.items():
    # Kernels are compiled and libraries loaded.
    work(made(60, 2, 3, 1.0))
    with peak_memory() as peak:
        work(log)
    found[name] = None if peak.mb is None else (peak.mb * 1e6 - 3 * 8 * log.features.size) / (8 * d * d)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_work_takes_as_many_matrices_as_are_counted(tmp_path):
    # Buffers of further threads are the libraries', and two that wait for each other on a busy machine take long.
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", MEASURE]
    ran = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout)
    if found["fit"] is None:
        pytest.skip("the system does not tell")
    tracking = memory_limit.FOLLOWING + 3 * memory_limit.FAMILY + memory_limit.CONTEST
    counted = {"tracking": memory_limit.FOLLOWING, "families": tracking, "state": memory_limit.STATE}
    for name, matrices in found.items():
        assert matrices < counted.get(name, memory_limit.FITTING), found
    # Far fewer would mean that logs are refused which would do.
    assert found["fit"] > memory_limit.FITTING / 2
    assert found["state"] > memory_limit.STATE / 2


@pytest.fixture
def wide(tmp_path):
    rng = np.random.default_rng(0)
    log = BanditLog.from_dense(rng.normal(size=(40, 2, 3000)), rng.integers(0, 2, 40))
    write_log(log, tmp_path / "wide.parquet")
    return tmp_path / "wide.parquet"


@pytest.mark.parametrize(
    "use",
    [
        lambda log: SuffixImitation().fit(log),
        lambda log: TrackingObserver().fit(log),
        diagnose,
        lambda log: burn_in_sweep(log, [0.5]),
    ],
    ids=["fit", "tracking", "diagnose", "sweep"],
)
def test_wide_logs_are_refused_before_the_limit_is_broken(wide, monkeypatch, use):
    # The process of the tests holds more than a fresh one.
    monkeypatch.setattr(memory_limit, "resident", lambda: 0)
    scan = scan_log(wide, memory_limit="600MB")
    with pytest.raises(InputError, match=r"3,000 features take matrices of .* the memory limit is 600 MB: raise it"):
        use(scan)
    assert scan.read().n_features == 3000


def test_logs_with_few_features_need_no_more_than_before(monkeypatch):
    # The process of the tests holds more than a fresh one.
    monkeypatch.setattr(memory_limit, "resident", lambda: 0)
    for d in (1, 20, 200):
        check_work(d, WIDEST, limit=LEAST)
        assert Room(LEAST, d).sample_bytes > 0.2 * 0.95 * (LEAST - LIBRARIES - 32 * square(d))
    assert Room(as_bytes("2GB"), 20).sample_bytes == pytest.approx(0.25 * (2e9 - LIBRARIES), rel=1e-3)


def test_what_is_held_counts(monkeypatch):
    monkeypatch.setattr(memory_limit, "resident", lambda: 300_000_000)
    check_work(900, 20, limit=600_000_000)
    with pytest.raises(InputError, match=r"900 features .* in all some 1,410 MB"):
        check_work(900, 20, held=207_600_000, limit=600_000_000)
    monkeypatch.setattr(memory_limit, "resident", lambda: 590_000_000)
    with pytest.raises(InputError, match=r"900 features .* in all some 720 MB"):
        check_work(900, 20, limit=600_000_000)


def test_without_a_limit_the_machine_is_one(monkeypatch):
    monkeypatch.setattr(memory_limit, "_machine", lambda: 10**9)
    check_work(20, 20)
    with pytest.raises(InputError, match=r"this machine has 1\.0 GB"):
        check_work(3000, 20)


def test_few_parts_are_worked_on_at_a_time_where_they_find_much():
    assert Room(as_bytes("600MB"), 20).parts_at_once > 1000
    assert Room(as_bytes("600MB"), 800).parts_at_once == 1
    under_way, most = [], []

    def work(item):
        under_way.append(item)
        most.append(len(under_way))
        under_way.remove(item)
        return item

    assert list(ordered_map(work, range(20), most=1)) == list(range(20))
    assert max(most) == 1
    assert list(ordered_map(work, range(20), most=2)) == list(range(20))
