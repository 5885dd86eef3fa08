import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from onlooker import SuffixImitation, burn_in_sweep
from onlooker.base.errors import ColumnsLeftOutWarning, InputError, UnseenCategoryWarning
from onlooker.logs.categories import Encoding, as_categories, level_order
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy
from strategies import assert_equal_logs

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
each_library = pytest.mark.parametrize("table", LIBRARIES.values(), ids=LIBRARIES)

COLUMNS = {
    "round": [1, 1, 1, 2, 2],
    "chosen": [0, 1, 0, 1, 0],
    "price": [9.0, 7.0, 5.0, 8.0, 6.0],
    "colour": ["red", "blue", "red", "green", "blue"],
}


def by_hand(values, levels):
    """Every level but the first, as one would write it."""
    return [[float(value == level) for level in levels[1:]] for value in values]


@each_library
def test_text_is_one_hot_against_its_first_level(table):
    log = BanditLog.from_frame(table(COLUMNS))
    levels = ("blue", "green", "red")
    assert log.feature_names == ("price", "colour=green", "colour=red")
    assert log.categories == {"colour": levels}
    expected = np.column_stack([COLUMNS["price"], by_hand(COLUMNS["colour"], levels)])
    assert log.features.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "colours",
    [
        pd.Categorical(COLUMNS["colour"], categories=["red", "green", "blue", "never seen"]),
        pd.Series(COLUMNS["colour"], dtype="string"),
        pd.Series(COLUMNS["colour"], dtype=object),
    ],
    ids=["categorical", "string", "object"],
)
def test_kinds_of_pandas_text(colours):
    log = BanditLog.from_frame(pd.DataFrame(COLUMNS | {"colour": colours}))
    assert log.categories == {"colour": ("blue", "green", "red")}


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["red", "green", "blue", "never seen"])])
def test_kinds_of_polars_text(kind):
    log = BanditLog.from_frame(pl.DataFrame(COLUMNS).with_columns(pl.col("colour").cast(kind)))
    assert log.categories == {"colour": ("blue", "green", "red")}


@each_library
def test_numbers_are_categories_where_they_are_named_so(table):
    columns = COLUMNS | {"size": [10, 9, 10, 2, 9]}
    log = BanditLog.from_frame(table(columns), categories=["size"], features=["size"])
    assert log.categories == {"size": ("2", "9", "10")}
    assert log.features.tolist() == by_hand(map(str, columns["size"]), ("2", "9", "10"))


def test_the_order_of_columns_is_kept():
    log = BanditLog.from_frame(pa.table(COLUMNS), features=["colour", "price"])
    assert log.feature_names == ("colour=green", "colour=red", "price")


def many(n):
    return {"round": list(range(n)), "chosen": [1] * n, "x": [1.0] * n, "name": [f"item {i:03d}" for i in range(n)]}


def test_text_of_many_levels_is_left_out_unless_it_is_named():
    assert BanditLog.from_frame(pa.table(many(32))).n_features == 32
    with pytest.warns(ColumnsLeftOutWarning, match=r"'name' \(text of 33 levels\).*name those that matter as categ"):
        assert BanditLog.from_frame(pa.table(many(33))).feature_names == ("x",)
    assert BanditLog.from_frame(pa.table(many(33)), categories=["name"]).n_features == 33
    assert BanditLog.from_frame(pa.table(many(33)), features=["name"]).n_features == 32


def test_a_missing_level_is_refused_by_column_and_row():
    with pytest.raises(InputError, match=r"column 'colour', row 3 .* is missing"):
        BanditLog.from_frame(pa.table(COLUMNS | {"colour": ["a", "b", None, "a", "b"]}))


class TestLike:
    first = BanditLog.from_frame(pa.table(COLUMNS))

    @each_library
    def test_the_same_table_gives_the_same_log(self, table):
        shuffled = {name: COLUMNS[name] for name in ("colour", "price", "chosen", "round")}
        assert_equal_logs(BanditLog.from_frame(table(shuffled), like=self.first), self.first)
        policy = LinearPolicy([1.0, 2.0, 3.0], self.first.feature_names, self.first.categories)
        assert_equal_logs(BanditLog.from_frame(table(shuffled), like=policy), self.first)

    def test_levels_that_are_absent_keep_their_features(self):
        log = BanditLog.from_frame(pa.table(COLUMNS | {"colour": ["blue"] * 5}), like=self.first)
        assert log.feature_names == self.first.feature_names
        assert log.features[:, 1:].tolist() == [[0, 0]] * 5

    def test_an_unseen_level_is_told_and_scored_as_the_reference(self):
        columns = COLUMNS | {"colour": ["mauve", "blue", "mauve", "pink", "red"]}
        told = "column 'colour' has 'mauve' in 2 rows, 'pink' in 1 row, .* as the reference level 'blue'"
        with pytest.warns(UnseenCategoryWarning, match=told):
            log = BanditLog.from_frame(pa.table(columns), like=self.first)
        assert log.features[:, 1:].tolist() == [[0, 0], [0, 0], [0, 0], [0, 0], [0, 1]]

    def test_a_column_that_lacks_is_refused(self):
        with pytest.raises(InputError, match=r"no column 'colour'.*name it as `like`"):
            BanditLog.from_frame(pa.table(COLUMNS).drop_columns(["colour"]), like=self.first)

    def test_it_says_which_features_there_are(self):
        with pytest.raises(InputError, match="leave `features` and `categories` out"):
            BanditLog.from_frame(pa.table(COLUMNS), like=self.first, features=["price"])
        with pytest.raises(InputError, match="has no feature names"):
            BanditLog.from_frame(pa.table(COLUMNS), like=LinearPolicy([1.0]))


def test_logs_and_policies_carry_their_categories(tmp_path):
    log = BanditLog.from_frame(pa.table(COLUMNS))
    for other in (log[1:], log.suffix(1), log[np.array([1, 0])], pickle.loads(pickle.dumps(log))):
        assert other.categories == log.categories
    with pytest.raises(TypeError):
        log.categories["colour"] = ("a", "b")
    policy = LinearPolicy([1.0, 2.0, 3.0], log.feature_names, log.categories)
    policy.save(tmp_path / "policy.json")
    for other in (LinearPolicy.load(tmp_path / "policy.json"), pickle.loads(pickle.dumps(policy))):
        assert other == policy
        assert other.categories == log.categories
    assert policy != LinearPolicy([1.0, 2.0, 3.0], log.feature_names)


def test_what_is_learned_carries_them_too():
    rng = np.random.default_rng(0)
    names = np.array(["a", "b", "c"])[rng.integers(0, 3, 600)]
    table = pa.table(
        {"round": np.arange(600) // 3, "chosen": np.arange(600) % 3 == 0, "x": rng.normal(size=600), "n": names}
    )
    log = BanditLog.from_frame(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert SuffixImitation(burn_in=0).fit(log).policy_.categories == {"n": ("a", "b", "c")}
    assert burn_in_sweep(log, [0.5]).policy(0).categories == {"n": ("a", "b", "c")}


def test_weights_do_not_depend_on_which_level_is_the_reference():
    """Against a fit of dummies made by hand with another reference: differences of weights agree."""
    rng = np.random.default_rng(1)
    colours = np.array(["a", "b", "c"])[rng.integers(0, 3, 4000)]
    worth = {"a": 0.0, "b": 1.0, "c": -1.0}
    utility = np.array([worth[colour] for colour in colours]).reshape(-1, 4) + rng.gumbel(size=(1000, 4))
    chosen = (utility.argmax(axis=1)[:, None] == np.arange(4)).ravel()
    table = pa.table({"round": np.repeat(np.arange(1000), 4), "chosen": chosen, "colour": colours})
    ours = SuffixImitation(burn_in=0, l2=0).fit(BanditLog.from_frame(table)).theta_
    dummies = np.column_stack([colours == "a", colours == "b"]).astype(float)
    other = (
        SuffixImitation(burn_in=0, l2=0).fit(BanditLog(dummies, np.arange(0, 4001, 4), utility.argmax(axis=1))).theta_
    )
    b, c = ours
    assert [b, c] == pytest.approx([other[1] - other[0], -other[0]], abs=1e-5)
    assert [b, c] == pytest.approx([1, -1], abs=0.3)


class TestPick:
    policy = LinearPolicy(
        [-1.0, 0.5, 5.0], ["price", "colour=green", "colour=red"], {"colour": ["blue", "green", "red"]}
    )

    @each_library
    def test_raw_columns_in_any_order(self, table):
        offers = {"colour": ["blue", "red", "blue"], "unused": [1, 2, 3], "price": [9.0, 13.0, 7.5]}
        assert self.policy.pick(table(offers)) == 2
        assert self.policy.pick(table(offers | {"price": [9.0, 11.0, 7.5]})) == 1

    def test_against_choose_on_a_log(self):
        log = BanditLog.from_frame(pa.table(COLUMNS))
        picks = [self.policy.pick(log.arms(t)) for t in range(2)]
        tables = [pa.table({name: COLUMNS[name][a:b] for name in ("price", "colour")}) for a, b in ((0, 3), (3, 5))]
        assert picks == self.policy.choose(log).tolist() == [self.policy.pick(one) for one in tables]

    def test_the_first_of_equals(self):
        assert LinearPolicy([1.0]).pick([[2.0], [3.0], [3.0]]) == 1

    @pytest.mark.parametrize(
        ("offers", "message"),
        [
            (np.zeros((2, 2)), r"shape \(2, 2\): pass one row per arm, 3 features"),
            (np.zeros(3), r"shape \(3,\)"),
            (np.zeros((0, 3)), "no arm is on offer"),
            ([["a", "b", "c"]], "do not hold numbers: pass a table"),
            (np.array([[1.0, 2.0, np.nan]]), "arm 0 has a missing"),
            (pa.table({"price": [1.0]}), "no column 'colour'"),
            ({"price": 1}, "a dict is not a table"),
        ],
    )
    def test_refuses(self, offers, message):
        with pytest.raises(InputError, match=message):
            self.policy.pick(offers)

    def test_an_unseen_level_is_told(self):
        with pytest.warns(UnseenCategoryWarning, match="'pink' in 1 row"):
            assert self.policy.pick(pa.table({"price": [1.0, 2.0], "colour": ["pink", "blue"]})) == 0


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ({"c": "ab"}, "must map columns to their levels"),
        ({"c": [1, 2]}, "must map columns to their levels"),
        ({"c": ["a"]}, "it needs two or more"),
        ({"c": ["a", "a"]}, "all different"),
        ({"c": ["a", "b", "z"]}, "has no feature 'c=z'"),
    ],
)
def test_refuses(categories, message):
    with pytest.raises(InputError, match=message):
        as_categories(categories, ["x", "c=b"])


@pytest.mark.parametrize("levels", list(itertools.permutations(["2", "10", "1.5"])))
def test_numbers_are_ordered_as_numbers(levels):
    assert level_order(levels) == ("1.5", "2", "10")


def test_an_encoding_knows_its_columns():
    encoding = Encoding(("c=b", "x", "c=z"), {"c": ("a", "b", "z")})
    assert encoding.columns == ("c", "x")
    assert encoding.sources == (("c", "b"), ("x", None), ("c", "z"))
