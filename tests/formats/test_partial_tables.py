"""Tables that say less than the pick among all offers: groups, marks and probabilities, in every long format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from onlooker import BanditLog, InputError, read_log, scan_log, write_log

N, K = 200, 6


def _table() -> tuple[pa.Table, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    price, speed = rng.normal(size=(2, N, K))
    chosen = (price - speed + rng.gumbel(size=(N, K))).argmax(axis=1)
    flags = (np.arange(K)[None] == chosen[:, None]).astype(int)
    page = np.arange(K) // 2
    table = pa.table(
        {
            "round": np.repeat(np.arange(N), K),
            "flag": flags.ravel(),
            "page": np.tile([f"p{one}" for one in page], N),
            "picked_page": np.repeat([f"p{page[one]}" for one in chosen], K),
            "price": price.ravel(),
            "speed": speed.ravel(),
        }
    )
    return table, (page[None] == page[chosen][:, None]).ravel(), chosen


def test_a_group_column_gives_the_arms_of_the_group_that_was_picked() -> None:
    table, possible, _ = _table()
    named = BanditLog.from_frame(table, chosen="picked_page", picked_group="page", features=["price", "speed"])
    flagged = BanditLog.from_frame(table, chosen="flag", picked_group="page", features=["price", "speed"])
    marked = BanditLog.from_frame(
        table.append_column("may", pa.array(possible)), possible="may", features=["price", "speed"]
    )
    for log in (named, flagged, marked):
        np.testing.assert_array_equal(log.possible, possible)
        assert log.n_sets == N


def test_groups_may_be_numbers_even_0_and_1() -> None:
    table = pa.table(
        {"round": [1, 1, 1, 2, 2, 2], "chosen": [1, 1, 1, 0, 0, 0], "page": [0, 1, 1, 0, 0, 1], "x": np.arange(6.0)}
    )
    log = BanditLog.from_frame(table, picked_group="page")
    np.testing.assert_array_equal(log.possible, [0, 1, 1, 1, 1, 0])
    assert log.feature_names == ("x",)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "long.parquet", "csv.gz"])
def test_files_keep_what_is_known_in_part(tmp_path: Path, suffix: str) -> None:
    table, possible, _ = _table()
    log = BanditLog.from_frame(table, chosen="picked_page", picked_group="page", features=["price", "speed"])
    log = BanditLog(
        log.features,
        log.offsets,
        None,
        possible=possible,
        offer_probability=np.linspace(0.1, 1.0, N * K),
        feature_names=log.feature_names,
    )
    path = tmp_path / f"log.{suffix}"
    write_log(log, path)
    again = read_log(path)
    np.testing.assert_array_equal(again.possible, possible)
    np.testing.assert_allclose(again.offer_probability, log.offer_probability)
    np.testing.assert_allclose(again.features, log.features)
    frame = BanditLog.from_frame(log.to_frame())
    np.testing.assert_array_equal(frame.possible, possible)
    np.testing.assert_allclose(frame.offer_probability, log.offer_probability)
    assert frame.feature_names == log.feature_names
    parts = list(scan_log(path))
    np.testing.assert_array_equal(BanditLog.concat(parts).possible, possible)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chosen": "flag", "picked_group": "pag"}, "no column 'pag'"),
        ({"chosen": "flag", "possible": "flag2"}, "leave `chosen` and `picked_group` out"),
        ({"chosen": "flag", "offer_probability": "page"}, "probabilities are numbers"),
        ({"chosen": "flag", "offer_probability": "price"}, "above 0 and at most 1"),
        ({"chosen": "flag", "picked_group": "page", "slate": "price"}, "`picked_group` is for long tables"),
        ({"chosen": "flag", "picked_group": "page", "features": ["page"]}, "cannot be a feature too"),
        ({"possible": "price"}, "use 1 for the pick and 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BanditLog.from_frame(_table()[0], **options)


def test_a_group_that_no_arm_has_is_refused() -> None:
    table = pa.table({"round": [1, 1], "chosen": ["c", "c"], "page": ["a", "b"], "x": [1.0, 2.0]})
    with pytest.raises(InputError, match=r"round 1, from row 1 .* on: no arm has the 'page' that 'chosen' names"):
        BanditLog.from_frame(table, picked_group="page")


def test_several_picks_say_how_to_read_them() -> None:
    table = pa.table({"round": [1, 1, 1], "chosen": [1, 1, 0], "x": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="name it as `possible`"):
        BanditLog.from_frame(table)
