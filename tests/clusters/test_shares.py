"""Every part of a log is in one share, whatever the format."""

import pickle
import warnings

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.clusters.part_store import PartStore, Span, packed, shares_of
from onlooker.formats import scan_log, write_log
from onlooker.formats.scan import Held
from onlooker.logs.log import BanditLog
from strategies import assert_equal_logs


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_shares_hold_the_log(tmp_path, log, suffix, workers):
    for number in range(6):
        part = log[number * 100 : (number + 1) * 100]
        ids = np.arange(number * 100, (number + 1) * 100)
        whole = BanditLog(part.features, part.offsets, part.chosen, round_ids=ids)
        write_log(whole, tmp_path / f"day{number}.{suffix}")
    scan = pickle.loads(packed(scan_log(f"{tmp_path}/*.{suffix}", batch_rows=700)))
    found = [part for share in shares_of(scan, workers) for part in share.read(scan)]
    assert sorted(number for number, _ in found) == list(range(len(found)))
    assert_equal_logs(BanditLog.concat([part for _, part in sorted(found, key=lambda pair: pair[0])]), scan.read())
    assert len(shares_of(scan, workers)) <= workers


def test_shares_are_about_as_large(scan):
    sizes = [sum(part.n_rounds for _, part in share.read(scan)) for share in shares_of(scan, 4)]
    assert sizes == [750] * 4


def test_formats_that_are_read_whole_travel(data_folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scan = scan_log(data_folder / "obd" / "random" / "women", batch_rows=5000)
        again = pickle.loads(packed(scan))
        assert_equal_logs(again.read(), scan.read())


def test_categories_travel(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("round,chosen,kind,price\n" + "".join(f"{n},1,a,1\n{n},0,b,{n}\n" for n in range(9)))
    write_log(scan_log(path).read(), tmp_path / "log.parquet")
    for scan in (scan_log(path), scan_log(tmp_path / "log.parquet")):
        again = pickle.loads(packed(scan))
        assert again.categories == scan.categories == {"kind": ("a", "b")}
        assert_equal_logs(again.read(), scan.read())


def test_a_log_that_changed_is_refused(scan):
    (share,) = shares_of(scan, 1)
    with pytest.raises(InputError, match=r"\*\.parquet: the log has changed since it was opened"):
        PartStore(scan)(share, len, [Span(0, Held(375, 0), 0, 375, 0)])


def test_a_worker_that_finds_another_file_refuses_it(tmp_path, log):
    write_log(log[:100], tmp_path / "log.parquet")
    travelling = packed(PartStore(scan_log(tmp_path / "log.parquet")))
    pickle.loads(travelling)
    write_log(log[100:200], tmp_path / "log.parquet")
    with pytest.raises(InputError, match=r"log\.parquet: is not the file that was opened, or has changed since"):
        pickle.loads(travelling)


def test_workers_that_come_upon_the_same_part_tell_what_it_held(tmp_path, log):
    write_log(log[:400], tmp_path / "log.csv")
    opened = scan_log(tmp_path / "log.csv", batch_rows=700)
    found = [dict(PartStore(pickle.loads(packed(opened)))(share)) for share in shares_of(opened, 2)]
    assert all(found[0][number][0] == held for number, (held, _) in found[1].items())
    assert [kept for _, kept in found[0].values()] != [kept for _, kept in found[1].values()]
