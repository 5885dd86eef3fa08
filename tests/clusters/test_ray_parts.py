"""A log on a real cluster: the same numbers as on one machine, whoever dies on the way; errors, never a hang."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cluster_tasks import Slow, process, rounds, wrong
from onlooker.base.errors import ClusterError, InputError
from onlooker.clusters import RayParts, ray_parts
from onlooker.clusters.part_store import packed
from onlooker.formats import LogScan, scan_log, write_parts
from onlooker.imitation.sweep import burn_in_sweep
from onlooker.logs.parts_summary import summarise_parts
from onlooker.observers import SuffixImitation
from strategies import assert_equal_logs

from .conftest import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def small_sample():
    """A log that is no larger than a sample would be fitted here, not by workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LogScan, "sample_bytes", 30_000)
        yield


@pytest.fixture(scope="module")
def parts(scan, cluster):
    with RayParts(scan, address=cluster, workers=2) as parts:
        yield parts


def noted(path):
    """Processes that have begun, with the round that they began at."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def expected(scan):
    return list(scan.run(rounds))


def same_fit(left, right):
    return np.array_equal(left.theta_, right.theta_) and np.array_equal(left.covariance_, right.covariance_)


def test_the_fit_is_that_of_one_machine_bit_for_bit(parts, scan):
    assert same_fit(SuffixImitation(burn_in="rule").fit(parts), SuffixImitation(burn_in="rule").fit(scan))
    assert len(set(parts.run(process))) == 2
    assert list(parts.run(rounds)) == expected(scan)
    alphas = [0.5, 0.7, 0.8, 0.9]
    here, there = burn_in_sweep(scan, alphas), burn_in_sweep(parts, alphas)
    assert np.array_equal(here.thetas, there.thetas)
    # Rounds, not parts, are what a caller asks for.
    assert list(parts.run(rounds, 400, 1001)) == list(scan.run(rounds, 400, 1001))
    assert list(parts.run(rounds, 3000)) == []
    # No more of the features than a sample is sent, and that once.
    received = parts.link.received
    here, there = summarise_parts(scan), summarise_parts(parts)
    assert_equal_logs(here.sample, there.sample)
    assert here.stride == there.stride == 32
    assert parts.link.received - received < 60_000
    # The features of a pass would be half a megabyte.
    sent, received = parts.link.sent, parts.link.received
    list(parts.run(rounds))
    assert parts.link.sent - sent < 4000
    assert parts.link.received - received < 4000


def test_a_log_that_can_only_be_read_in_order(log, cluster, tmp_path):
    write_parts([log[:600]], tmp_path / "log.parquet", long=True)
    scan = scan_log(tmp_path / "log.parquet", batch_rows=500)
    assert scan.stretches() is None
    with RayParts(scan, address=cluster, workers=2) as parts:
        assert parts.n_workers == 2
        assert len(expected(scan)) > 4
        assert list(parts.run(rounds)) == expected(scan)
        assert same_fit(SuffixImitation(burn_in=100).fit(parts), SuffixImitation(burn_in=100).fit(scan))


def test_workers_that_are_killed_are_replaced_and_only_their_parts_done_again(parts, scan, tmp_path):
    note = tmp_path / "note.txt"
    task = Slow(0.3, str(note))

    def kill():
        wait_for(lambda: len(noted(note)) >= 4, 30)
        os.kill(noted(note)[0][0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = list(parts.run(task))
    killer.join()
    assert found == expected(scan)
    first = noted(note)[0][0]
    survivors = {pid for pid, _ in noted(note)[:4]} - {first}
    kept = [begun for pid, begun in noted(note) if pid in survivors]
    assert len(kept) == len(set(kept)) == 4
    # Then all at once, and between passes.
    for pid in set(parts.run(process)):
        os.kill(pid, signal.SIGKILL)
    assert list(parts.run(rounds)) == expected(scan)


def test_a_worker_that_hangs_is_given_up(cluster, scan, monkeypatch):
    monkeypatch.setattr("onlooker.clusters.link.SILENCE", 5.0)
    with RayParts(scan, address=cluster, workers=2) as parts:
        stopped = next(iter(parts.run(process)))
        os.kill(stopped, signal.SIGSTOP)
        try:
            assert list(parts.run(rounds)) == expected(scan)
        finally:
            with suppress(ProcessLookupError):
                os.kill(stopped, signal.SIGKILL)


def test_files_that_cannot_be_read(parts, scan):
    damaged, whole = scan.paths[5], expected(scan)
    content, times = damaged.read_bytes(), damaged.stat()
    damaged.write_bytes(content[:100] + bytes(len(content) - 300) + content[-200:])
    try:
        # Those that have the parts need no file.
        assert list(parts.run(rounds)) == expected(scan_log(scan.paths[:5])) + list(parts.run(rounds, 5 * 375))
        for pid in set(parts.run(process)):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(InputError, match=r"day5\.parquet"):
            list(parts.run(rounds))
    finally:
        damaged.write_bytes(content)
        os.utime(damaged, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert list(parts.run(rounds)) == expected(scan) == whole


@pytest.mark.parametrize("passed", [False, True])
def test_a_log_that_changes_while_workers_load_it(log, cluster, tmp_path, monkeypatch, passed):
    opened, swap = two_versions(log, tmp_path)
    if passed:
        expected(opened)
    # Workers are started with the one version and find the other.
    monkeypatch.setattr(ray_parts, "packed", lambda value: (packed(value), swap())[0])
    with pytest.raises(InputError, match=r"log\.parquet: .*(was written to|content of the log changed)"):
        RayParts(opened, address=cluster, workers=2)


def test_a_log_that_changed_before_a_worker_loads_it_again(log, cluster, tmp_path):
    opened, swap = two_versions(log, tmp_path)
    with RayParts(opened, address=cluster, workers=2) as parts:
        found = list(parts.run(rounds))
        swap()
        assert list(parts.run(rounds)) == found
        for pid in set(parts.run(process)):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(InputError, match=r"log\.parquet: the log has changed since it was opened"):
            list(parts.run(rounds))


def two_versions(log, folder):
    """A scan of a file, and what turns it into another one of the same size, ends and time."""
    path, rows = folder / "log.parquet", log.features[: 600 * 8].reshape(600, 8, 5).astype(float)
    times = []
    for features in (np.concatenate([rows[:300], -rows[300:301], rows[301:]]), rows):
        lists = pa.array(features.tolist(), pa.list_(pa.list_(pa.float64())))
        table = pa.table({"arms": lists, "chosen": log.chosen[:600]})
        plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
        pq.write_table(table, path, row_group_size=100, **plain)
        times.append((path.read_bytes(), path.stat()))
    (other, _), (ours, before) = times
    assert len(other) == len(ours)
    assert other[:1000] == ours[:1000]
    assert other[-1000:] == ours[-1000:]

    def swap():
        path.write_bytes(other)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return scan_log(path, batch_rows=700), swap


def test_a_task_that_fails(parts, scan):
    with pytest.raises(ClusterError, match=r"a worker failed: ZeroDivisionError: division by zero") as caught:
        list(parts.run(wrong))
    assert "in wrong" in caught.value.__notes__[0]
    assert list(parts.run(rounds)) == expected(scan)


def test_a_killed_driver_leaves_nothing_behind(scan, cluster, tmp_path):
    note = tmp_path / "note.txt"
    names = [str(path) for path in scan.paths]
    code = (
        "from cluster_tasks import Slow; from onlooker.clusters import RayParts; "
        "from onlooker.formats import scan_log; "
        f"list(RayParts(scan_log({names}), address={cluster!r}, workers=2).run(Slow(60.0, {str(note)!r})))"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    wait_for(lambda: len(noted(note)) == 2, 60)
    driver.kill()
    driver.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid, _ in noted(note)), 30)
