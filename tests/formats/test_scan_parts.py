"""A scan works on its parts side by side, with the same results as the log in memory."""

from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from onlooker.base import memory_limit
from onlooker.base.errors import InputError
from onlooker.base.memory_limit import LEAST, Room, as_bytes, check_resident
from onlooker.formats import nested_parquet as nested_scan
from onlooker.formats import scan_log, write_log, write_parts
from onlooker.formats.nested_file import NestedFile
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Parts, TakePart, parts_of
from onlooker.observers import SuffixImitation, TrackingObserver
from strategies import assert_equal_logs


def random_log(seed, rounds=600, d=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, rounds)
    offsets = np.cumsum([0, *sizes])
    features = rng.normal(size=(offsets[-1], d)).astype(dtype)
    scores = features @ np.arange(1, d + 1) + rng.gumbel(size=len(features))
    chosen = [int(scores[a:b].argmax()) for a, b in pairwise(offsets)]
    return BanditLog(features, offsets, chosen, feature_names=["a", "b", "c"][:d], round_ids=np.arange(rounds))


class Where:
    """Which rounds a part holds."""

    def __call__(self, part, first):
        return first, part.n_rounds


@pytest.mark.parametrize("kind", ["nested", "one group", "ordered", "long", "csv"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_parts_cover_what_was_asked_for(tmp_path, monkeypatch, kind, threads):
    monkeypatch.setenv("ONLOOKER_THREADS", threads)
    log = random_log(0)
    options = {}
    path = tmp_path / ("log.csv" if kind == "csv" else "log.parquet")
    if kind == "one group":
        monkeypatch.setattr(nested_scan, "_SMALL_GROUP", 0)
        write_log(log, tmp_path / "small.parquet")
        pq.write_table(pq.read_table(tmp_path / "small.parquet"), path)
    elif kind == "csv":
        write_log(log, path)
    else:
        write_parts((log[a : a + 40] for a in range(0, 600, 40)), path, long=kind == "long")
        options = {"order_by": "round"} if kind == "ordered" else {}
    scan = scan_log(path, batch_rows=100, **options)
    assert isinstance(scan, Parts)
    for start, stop in ((0, None), (1, 599), (250, None), (250, 251), (0, 7), (599, None), (600, None), (40, 80)):
        placed = list(scan.run(Where(), start, stop))
        rounds = [t for first, n in placed for t in range(first, first + n)]
        assert rounds == list(range(start, 600 if stop is None else stop))
        if rounds:
            assert_equal_logs(BanditLog.concat(list(scan.run(TakePart(), start, stop))), log[start:stop])
    assert_equal_logs(BanditLog.concat(list(parts_of(scan))), log)
    assert kind == "csv" or len(placed) < len(list(scan.run(Where())))


def test_row_groups_before_the_start_are_not_read(tmp_path, monkeypatch):
    log = random_log(1)
    for day, first in enumerate(range(0, 600, 200)):
        write_parts((log[a : a + 20] for a in range(first, first + 200, 20)), tmp_path / f"day{day}.parquet")
    scan = scan_log(tmp_path / "*.parquet", batch_rows=100)
    read = []
    original = NestedFile.read_groups
    monkeypatch.setattr(NestedFile, "read_groups", lambda file, groups: read.append(groups) or original(file, groups))
    list(scan.run(Where(), 590))
    assert len(read) == 1
    list(scan.run(Where(), 0, 10))
    assert len(read) == 2


@pytest.mark.parametrize("long", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_fits_rounds_that_straddle_files_and_row_groups(tmp_path, monkeypatch, long, seed):
    log = random_log(seed, rounds=500)
    write_parts([log], tmp_path / "whole.parquet", long=long)
    table = pq.read_table(tmp_path / "whole.parquet")
    rng = np.random.default_rng(seed)
    cuts = [0, *sorted(rng.choice(np.arange(1, len(table)), 3, replace=False).tolist()), len(table)]
    for number, (a, b) in enumerate(pairwise(cuts)):
        pq.write_table(table.slice(a, b - a), tmp_path / f"part{number}.parquet", row_group_size=37)
    scan = scan_log(tmp_path / "part*.parquet", batch_rows=500)
    monkeypatch.setattr(type(scan), "sample_bytes", 20_000)
    expected = SuffixImitation(burn_in="rule").fit(log)
    fits = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        fits.append(SuffixImitation(burn_in="rule").fit(scan))
    np.testing.assert_allclose(fits[0].theta_, expected.theta_, atol=1e-7)
    np.testing.assert_allclose(fits[0].covariance_, expected.covariance_, rtol=1e-6)
    assert fits[0].policy_.feature_names == ("a", "b", "c")
    for other in fits[1:]:
        assert np.array_equal(other.theta_, fits[0].theta_)
        assert np.array_equal(other.covariance_, fits[0].covariance_)


# The picks are those of a fixed policy, which is no learner that could be named.
@pytest.mark.filterwarnings("ignore:none of the known learners")
def test_a_scan_that_fits_into_memory_gives_the_same_bits(tmp_path):
    log = random_log(3, rounds=2500)
    write_log(log, tmp_path / "log.parquet")
    scan = scan_log(tmp_path / "log.parquet", batch_rows=300)
    for observer in (SuffixImitation(burn_in="auto"), TrackingObserver()):
        mine = observer.fit(scan).theta_
        assert np.array_equal(mine, observer.fit(log).theta_)


def test_a_file_that_breaks_off_is_named(tmp_path):
    log = random_log(4)
    for name, rounds in (("a", log[:300]), ("b", log[300:])):
        write_parts((rounds[a : a + 30] for a in range(0, 300, 30)), tmp_path / f"{name}.parquet")
    whole = (tmp_path / "b.parquet").read_bytes()
    middle = len(whole) // 2
    (tmp_path / "b.parquet").write_bytes(whole[:middle] + bytes(2000) + whole[middle + 2000 :])
    scan = scan_log(tmp_path / "*.parquet", batch_rows=100)
    for work in (list, lambda scan: list(scan.run(Where())), SuffixImitation(burn_in="rule").fit):
        with pytest.raises(InputError, match=r"b\.parquet: "):
            work(scan)


def test_leaving_a_scan_early(tmp_path):
    write_parts((random_log(5)[a : a + 30] for a in range(0, 600, 30)), tmp_path / "log.parquet")
    scan = scan_log(tmp_path / "log.parquet", batch_rows=100)
    for parts in (iter(scan), scan.run(TakePart())):
        assert next(parts).n_rounds
        parts.close()
    assert sum(part.n_rounds for part in scan) == 600


def test_files_of_other_features_are_refused_wherever_they_are_read(tmp_path):
    for name, d in (("a", 3), ("b", 2)):
        write_log(BanditLog.from_dense(np.ones((4, 2, d)), chosen=[0] * 4), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="has 2 features, but before 3"):
        list(scan_log(tmp_path / "*.parquet").run(Where()))


@pytest.mark.parametrize("limit", ["12 apples", "MB", "-5GB", True, 1.5, ""])
def test_limits_that_are_none(limit):
    with pytest.raises(InputError, match=r"memory_limit is .*: pass bytes"):
        as_bytes(limit)


def test_limits_that_leave_no_room():
    with pytest.raises(InputError, match="at least 500 MB"):
        as_bytes("499MB")
    assert as_bytes("500MB") == as_bytes(500_000_000) == LEAST
    assert Room(LEAST, n_features=10**9).batch_rows == 1
    held = np.ones(70_000_000)
    with pytest.raises(InputError, match="already: raise the limit"):
        check_resident(LEAST)
    assert held.all()


def test_formats_that_are_read_whole_are_refused_where_they_do_not_fit(tmp_path, monkeypatch):
    (tmp_path / "log.vw").write_text("shared |\n0:1:0.5 | a\n| b\n\n")
    # Asked twice before it refuses: what was freed is given back in between.
    taken = iter([0, 0, 600_000_001, 600_000_001])
    monkeypatch.setattr(memory_limit, "resident", lambda: next(taken, 0))
    with pytest.raises(InputError, match=r"log\.vw: would take 34 MB more, but the memory limit of 600 MB leaves 0 MB"):
        scan_log(tmp_path / "log.vw", memory_limit="600MB")
    assert scan_log(tmp_path / "log.vw", memory_limit="600MB").read().n_rounds == 1
    monkeypatch.setattr(memory_limit, "SAMPLE_SHARE", 1e-8)
    with pytest.raises(InputError, match=r"log\.vw: has features of 0 MB, but a memory limit of 600 MB has room for"):
        scan_log(tmp_path / "log.vw", memory_limit="600MB")


def test_the_limit_decides_how_much_is_read_at_a_time(tmp_path, monkeypatch):
    # The process of the tests holds more than a fresh one.
    monkeypatch.setattr(memory_limit, "resident", lambda: 0)
    X = np.ones((3000, 20, 50), dtype=np.float32)
    write_log(BanditLog.from_dense(X, chosen=np.zeros(3000, int)), tmp_path / "log.parquet")
    pq.write_table(pq.read_table(tmp_path / "log.parquet"), tmp_path / "one_group.parquet")
    for name in ("log.parquet", "one_group.parquet"):
        scan = scan_log(tmp_path / name, memory_limit="500MB")
        sizes = [part.features.size for part in scan]
        assert sum(sizes) == X.size
        assert max(sizes) <= max(Room(500_000_000, 50).batch_rows * 50, 1 << 20 if name == "log.parquet" else 0)
