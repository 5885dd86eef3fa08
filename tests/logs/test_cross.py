"""Products of columns as features."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import SuffixImitation
from onlooker.base.errors import InputError
from onlooker.formats import read_log, scan_log
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy


def table(n=120, arms=4, seed=0, devices=("desk", "phone"), levels=("blue", "red", "teal")):
    rng = np.random.default_rng(seed)
    chosen = np.zeros((n, arms), dtype=int)
    chosen[np.arange(n), rng.integers(arms, size=n)] = 1
    return pa.table(
        {
            "round": np.repeat(np.arange(n), arms),
            "chosen": chosen.ravel(),
            "price": rng.normal(size=n * arms),
            "speed": rng.normal(size=n * arms),
            "colour": rng.choice(levels, size=n * arms),
            "age": np.repeat(rng.normal(size=n), arms),
            "device": np.repeat(rng.choice(devices, size=n), arms),
        }
    )


def column(of, name):
    return np.array(of[name].to_pylist())


def test_numbers_and_categories_are_multiplied():
    rows = table()
    log = BanditLog.from_frame(
        rows,
        features=["price", "colour"],
        cross=[("price", "speed"), ("age", "price"), ("device", "price"), ("device", "colour")],
    )
    assert log.feature_names == (
        *("price", "colour=red", "colour=teal", "price:speed", "age:price", "device=phone:price"),
        *("device=phone:colour=red", "device=phone:colour=teal"),
    )
    phone, red = column(rows, "device") == "phone", column(rows, "colour") == "red"
    expected = {
        "price:speed": column(rows, "price") * column(rows, "speed"),
        "age:price": column(rows, "age") * column(rows, "price"),
        "device=phone:price": phone * column(rows, "price"),
        "device=phone:colour=red": phone * red,
    }
    for name, values in expected.items():
        assert np.array_equal(log.dense[:, log.feature_names.index(name)], values)
    assert log.categories == {"colour": ("blue", "red", "teal"), "device": ("desk", "phone")}


def test_a_square():
    rows = table()
    log = BanditLog.from_frame(rows, features=["price"], cross=[("price", "price")])
    assert log.feature_names == ("price", "price:price")
    assert np.array_equal(log.dense[:, 1], log.dense[:, 0] ** 2)


def test_single_precision_stays():
    rows = pa.table({"round": [1, 1], "chosen": [1, 0], "x": np.float32([2, 3]), "y": np.float32([5, 7])})
    log = BanditLog.from_frame(rows, cross=[("x", "y")])
    assert log.features.dtype == np.float32
    assert log.dense[:, 2].tolist() == [10, 21]


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_a_policy_encodes_other_files_likewise(tmp_path):
    cross = [("age", "price"), ("device", "colour")]
    log = BanditLog.from_frame(table(), features=["price", "colour"], cross=cross)
    policy = SuffixImitation(burn_in="naive").fit(log).policy_
    policy.save(tmp_path / "policy.json")
    saved = LinearPolicy.load(tmp_path / "policy.json")
    assert saved == policy
    assert "cross" not in json.loads((tmp_path / "policy.json").read_text())
    pq.write_table(table(seed=1), tmp_path / "other.parquet")
    expected = BanditLog.from_frame(table(seed=1), features=["price", "colour"], cross=cross)
    for options in ({"like": saved}, {"like": saved, "cross": cross}):
        for read in (read_log, lambda path, **given: scan_log(path, batch_rows=50, **given).read()):
            found = read(tmp_path / "other.parquet", **options)
            assert np.array_equal(policy.probabilities(found), policy.probabilities(expected))
    assert policy.pick(table(seed=1)[:4]) == int(policy.choose(expected)[0])


def test_many_levels_stay_sparse():
    rows = table(600, levels=[f"item {k}" for k in range(400)])
    cross = [("device", "colour"), ("colour", "price"), ("age", "price")]
    log = BanditLog.from_frame(rows, features=["price"], categories=["colour"], cross=cross)
    assert not isinstance(log.features, np.ndarray)
    phone, dense = column(rows, "device") == "phone", log.features.toarray()
    level = log.categories["colour"][7]
    has = column(rows, "colour") == level
    names = log.feature_names
    assert np.array_equal(dense[:, names.index(f"device=phone:colour={level}")], phone & has)
    assert np.array_equal(dense[:, names.index(f"colour={level}:price")], has * column(rows, "price"))
    assert np.array_equal(dense[:, names.index("age:price")], column(rows, "age") * column(rows, "price"))
    assert np.count_nonzero(dense[:, names.index(f"colour={level}")]) == np.count_nonzero(has)


def test_scans_multiply_too(tmp_path):
    pq.write_table(table(), tmp_path / "log.parquet")
    options = {"cross": [("age", "price"), ("device", "colour")]}
    whole, scan = (
        read_log(tmp_path / "log.parquet", **options),
        scan_log(tmp_path / "log.parquet", batch_rows=60, **options),
    )
    assert scan.feature_names == whole.feature_names
    assert np.array_equal(scan.read().dense, whole.dense)
    assert scan.categories == whole.categories


@pytest.mark.parametrize(
    ("cross", "message"),
    [
        ([("price", "weight")], "no column 'weight'.*name it as `cross`"),
        ([("price", "round")], "column 'round' cannot be multiplied"),
        ([("colour", "colour")], "column 'colour' is a category, which is its own square"),
        ([("price",)], "a table needs pairs of columns"),
        ([("price", "speed", "age")], "a table needs pairs of columns"),
        (True, "option 'cross' is True, but a table needs pairs of columns"),
        ("price:speed", "a table needs pairs"),
        ([3], "a table needs pairs"),
        ([("price", "huge")], "column 'price:huge', row 1 .* is -?inf"),
        ([("price", "fixed")], "column 'fixed' is the same in every row"),
    ],
)
def test_products_that_cannot_be_made(cross, message):
    rows = table().append_column("huge", pa.array(np.full(480, 1e308))).append_column("fixed", pa.array(["a"] * 480))
    rows = rows.set_column(2, "price", pa.array(np.full(480, 1e3)))
    with pytest.raises(InputError, match=message):
        BanditLog.from_frame(rows, features=["speed"], cross=cross)


def test_the_log_says_whether_like_has_a_product():
    log = BanditLog.from_frame(table(), features=["price", "speed"])
    with pytest.raises(InputError, match="`like` has no product 'age:price': leave it out of `cross`"):
        BanditLog.from_frame(table(), like=log, cross=[("age", "price")])
