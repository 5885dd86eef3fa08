"""Slates written as tables, and read back as they were."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from onlooker import BanditLog, InputError, read_log, write_log
from onlooker.formats import write_parts


@pytest.fixture
def slates() -> BanditLog:
    """Pages of two or three picks among five arms."""
    rng = np.random.default_rng(0)
    rows = []
    for page in range(20):
        order = rng.permutation(5)
        shown = 2 + page % 2
        for arm in range(5):
            place = int(order[arm]) + 1
            position = place if place <= shown else None
            rows.append({"round": f"p{page}", "arm": f"a{arm}", "position": position, "price": float(rng.normal())})
    return read_log(pa.Table.from_pylist(rows), slate="position")


def same(one: BanditLog, other: BanditLog) -> None:
    for name in ("features", "offsets", "chosen", "round_ids", "arm_ids"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".csv.gz"])
def test_files(slates: BanditLog, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"slates{suffix}"
    write_log(slates, path)
    same(read_log(path) if suffix == ".parquet" else read_log(path, slate="position"), slates)


def test_long_parquet_in_parts(slates: BanditLog, tmp_path: Path) -> None:
    path = tmp_path / "slates.parquet"
    write_parts([slates[:5], slates[5:]], path, long=True)
    same(read_log(path, slate="position"), slates)


def test_tables(slates: BanditLog) -> None:
    same(BanditLog.from_frame(slates.to_frame()), slates)


def test_slates_that_begin_late(slates: BanditLog, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="slates begin in a later part"):
        write_parts([slates[:1], slates[2:]], tmp_path / "slates.csv")
    assert not list(tmp_path.iterdir())


def test_a_feature_called_position(slates: BanditLog, tmp_path: Path) -> None:
    named = slates.with_features(slates.features, ["position"])
    with pytest.raises(InputError, match="cannot hold a feature called 'position'"):
        write_log(named, tmp_path / "slates.csv")
