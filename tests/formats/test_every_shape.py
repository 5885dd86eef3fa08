"""The same log through every shape that it can have gives the same theta, bit for bit.

A new shape, or a new place to read from, is one entry in `SHAPES`.
"""

import json
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from onlooker import SuffixImitation
from onlooker.base.errors import OnlookerWarning
from onlooker.formats import read_log, scan_log, write_log
from onlooker.logs.log import BanditLog

ARMS = ("1", "2", "3", "4")
COLOURS = ("blue", "red", "teal")


def make_rounds(n=400, seed=3):
    """Rounds of two to four arms: numbers, a category, a time and something about the visitor."""
    rng = np.random.default_rng(seed)
    rounds = []
    for t in range(n):
        offered = sorted(rng.choice(4, size=int(rng.integers(2, 5)), replace=False).tolist())
        arms = [
            {
                "id": ARMS[k],
                "price": round(float(rng.normal()), 6),
                "speed": round(float(rng.normal()), 6),
                "colour": COLOURS[int(rng.integers(3))],
            }
            for k in offered
        ]
        age = round(float(rng.normal()), 6)
        scores = [-a["price"] + 0.5 * a["speed"] * age + (a["colour"] == "red") + rng.gumbel() for a in arms]
        rounds.append({"time": 1000 + 7 * t, "age": age, "arms": arms, "pick": int(np.argmax(scores))})
    return rounds


ROUNDS = make_rounds()
CROSS = [("age", "speed"), ("colour", "price")]
OPTIONS = {"order_by": "time", "cross": CROSS}


def long_rows(rounds):
    return pa.Table.from_pylist(
        [
            {"round": t, "time": one["time"], "arm": int(a["id"]), "chosen": int(k == one["pick"]), "age": one["age"]}
            | {name: a[name] for name in ("price", "speed", "colour")}
            for t, one in enumerate(rounds)
            for k, a in enumerate(one["arms"])
        ]
    )


def wide_rows(rounds, pick=int, name="arm{}_{}"):
    rows = []
    for one in rounds:
        row = {"time": one["time"], "age": one["age"], "chosen": pick(one["arms"][one["pick"]]["id"])}
        offered = {a["id"]: a for a in one["arms"]}
        for label in ARMS:
            for feature in ("price", "speed", "colour"):
                row[name.format(label, feature)] = offered.get(label, {}).get(feature)
        rows.append(row)
    return pa.Table.from_pylist(rows)


def candidate_rows(rounds, how="id"):
    rows = []
    for one in rounds:
        arms = [dict(a) for a in one["arms"]]
        row = {"time": one["time"], "age": one["age"], "candidates": arms}
        if how == "flag":
            for k, a in enumerate(arms):
                a["chosen"] = k == one["pick"]
        elif how == "index":
            row["chosen"] = one["pick"]
            for a in arms:
                # Ids that are no picks.
                a["id"] = f"no. {a['id']}"
        else:
            row["chosen"] = arms[one["pick"]]["id"]
        rows.append(row)
    return rows


def csv(table, folder):
    pc.write_csv(table, folder / "log.csv")
    return folder / "log.csv"


def parquet(table, folder):
    pq.write_table(table, folder / "log.parquet")
    return folder / "log.parquet"


def jsonl(rows, folder):
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "log.jsonl"


def as_json_text(rows):
    return pa.Table.from_pylist([row | {"candidates": json.dumps(row["candidates"])} for row in rows])


def nested(rounds, folder):
    """What `write_log` writes, which holds the products as numbers."""
    log = read_log(long_rows(rounds), **OPTIONS)
    write_log(log, folder / "log.parquet")
    return folder / "log.parquet"


SHAPES = {
    "long CSV": (long_rows, csv, {}),
    "long Parquet": (long_rows, parquet, {}),
    "long JSONL": (lambda r: long_rows(r).to_pylist(), jsonl, {}),
    "long pyarrow": (long_rows, None, {}),
    "nested Parquet": (list, nested, {"order_by": None, "cross": None}),
    "wide CSV": (wide_rows, csv, {}),
    "wide Parquet": (wide_rows, parquet, {}),
    "wide JSONL": (lambda r: wide_rows(r).to_pylist(), jsonl, {}),
    "wide pyarrow": (wide_rows, None, {}),
    "wide pandas": (lambda r: wide_rows(r).to_pandas(), None, {}),
    "wide polars": (lambda r: pl.from_arrow(wide_rows(r)), None, {}),
    "wide, features first": (partial(wide_rows, name="{1}_{0}"), None, {}),
    "wide, picks by name": (partial(wide_rows, pick="arm{}".format), None, {}),
    "wide, picks from 0": (partial(wide_rows, pick=lambda label: int(label) - 1), None, {}),
    "wide by a pattern": (partial(wide_rows, name="of {0}: {1}"), None, {"wide": "of {arm}: {feature}"}),
    "candidates JSONL": (candidate_rows, jsonl, {}),
    "candidates JSONL, flags": (partial(candidate_rows, how="flag"), jsonl, {}),
    "candidates JSONL, positions": (partial(candidate_rows, how="index"), jsonl, {}),
    "candidates Parquet": (lambda r: pa.Table.from_pylist(candidate_rows(r)), parquet, {}),
    "candidates pyarrow": (lambda r: pa.Table.from_pylist(candidate_rows(r, "flag")), None, {}),
    "candidates polars": (lambda r: pl.DataFrame(candidate_rows(r)), None, {}),
    "candidates pandas": (lambda r: pd.DataFrame(candidate_rows(r, "flag")), None, {}),
    "candidates as JSON in CSV": (lambda r: as_json_text(candidate_rows(r)), csv, {}),
    "candidates as JSON in Parquet": (lambda r: as_json_text(candidate_rows(r, "flag")), parquet, {}),
}
"""What holds the rounds, how that is written (not at all where None), and what options it is read with besides."""


def source_of(shape, folder, rounds=ROUNDS):
    make, write, _ = SHAPES[shape]
    return make(rounds) if write is None else write(make(rounds), folder)


def options_of(shape):
    return {name: value for name, value in (OPTIONS | SHAPES[shape][2]).items() if value is not None}


@pytest.fixture(scope="module")
def expected():
    log = BanditLog.from_frame(long_rows(ROUNDS), arm="arm", **OPTIONS)
    return log, SuffixImitation(burn_in="naive").fit(log).theta_


def assert_same(log, expected):
    known, theta = expected
    assert log.feature_names == known.feature_names
    assert np.array_equal(log.dense, known.dense)
    assert np.array_equal(log.offsets, known.offsets)
    assert np.array_equal(log.chosen, known.chosen)
    assert [str(one).removeprefix("no. ") for one in log.arm_ids] == list(map(str, known.arm_ids))
    assert np.array_equal(SuffixImitation(burn_in="naive").fit(log).theta_, theta)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore::onlooker.base.errors.ColumnsLeftOutWarning")
def test_every_shape_gives_the_same_theta(tmp_path, expected, shape):
    log = read_log(source_of(shape, tmp_path), **options_of(shape))
    assert_same(log, expected)
    if "order_by" in options_of(shape):
        assert log.times.tolist() == [one["time"] for one in ROUNDS]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore::onlooker.base.errors.ColumnsLeftOutWarning")
def test_every_shape_is_scanned(tmp_path, expected, shape):
    scan = scan_log(source_of(shape, tmp_path), batch_rows=100, **options_of(shape))
    parts = list(scan)
    assert len(parts) > 1 or "CSV" in shape or "JSONL" in shape
    assert_same(BanditLog.concat(parts), expected)


@pytest.mark.parametrize("shape", ["wide pandas", "wide polars", "wide pyarrow", "candidates polars"])
@pytest.mark.filterwarnings("ignore::onlooker.base.errors.ColumnsLeftOutWarning")
def test_from_frame_takes_them_too(tmp_path, expected, shape):
    assert_same(BanditLog.from_frame(source_of(shape, tmp_path), **options_of(shape)), expected)


def test_what_a_round_has_besides_is_named():
    with pytest.warns(OnlookerWarning, match="the same for all arms of a round, .*'age'; `cross` multiplies"):
        log = read_log(wide_rows(ROUNDS), order_by="time")
    assert log.feature_names == ("price", "speed", "colour=red", "colour=teal")


def test_several_files_number_their_rounds(tmp_path):
    for number, rounds in enumerate([ROUNDS[:1], ROUNDS[1:2], ROUNDS[2:]]):
        pq.write_table(wide_rows(rounds), tmp_path / f"{number}.parquet")
    whole = scan_log(f"{tmp_path}/*.parquet", batch_rows=100, **OPTIONS).read()
    assert np.array_equal(whole.dense, read_log(long_rows(ROUNDS), **OPTIONS).dense)
    assert whole.round_ids.tolist() == list(range(len(ROUNDS)))
