"""Rows that follow from contexts and arms: the same as written out, never written out, and clear about bad input."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from onlooker import BanditLog, InputError, LinearPolicy
from onlooker.logs import factored_products
from onlooker.logs.factored import FactoredRows
from onlooker.logs.factored_curvature import arm_blocks

RNG = np.random.default_rng(5)
N, K, P = 40, 5, 3
CONTEXTS = RNG.normal(size=(N, P))
ARMS = np.array(["e", "d", "c", "b", "a"])
PICKS = ARMS[RNG.integers(0, K, N)]
MASK = RNG.random((N, K)) < 0.6
MASK[np.arange(N), [ARMS.tolist().index(pick) for pick in PICKS]] = True
ITEMS = RNG.normal(size=(K, 2))


def layouts():
    """Every form of factored rows."""
    which, bounds = np.nonzero(MASK)[1], np.append(0, np.cumsum(MASK.sum(axis=1)))
    for offers in ({"n_rounds": N}, {"which": which, "bounds": bounds}):
        rows = len(which) if "which" in offers else N * K
        for items in (None, ITEMS):
            for contexts in (None, CONTEXTS, CONTEXTS.astype(np.float32)):
                for own in (None, RNG.normal(size=(rows, 2))):
                    yield FactoredRows(arms=ARMS, contexts=contexts, items=items, own=own, **offers)


@pytest.mark.parametrize("rows", list(layouts()), ids=lambda rows: rows.described())
def test_products_are_those_of_the_rows_written_out(rows):
    array = rows.toarray()
    assert array.shape == rows.shape
    weights, values = RNG.normal(size=rows.shape[1]), RNG.normal(size=len(rows))
    np.testing.assert_allclose(rows @ weights, array @ weights, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(rows.T @ values, array.T @ values, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(rows.cross(values), array.T @ (values[:, None] * array), rtol=1e-4, atol=1e-5)
    assert (rows.absolute_largest() >= np.abs(array).max(axis=0) - 1e-6).all()
    for part in (slice(7, 31), slice(0, 0), slice(3, 40, 5), slice(K, 3 * K), np.array([9, 2, 3, 4, 4, 30])):
        np.testing.assert_array_equal(rows[part].toarray(), array[part])
    np.testing.assert_array_equal(type(rows).concat([rows[:11], rows[11:]]).toarray(), array)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)).toarray(), array)


def written_out(contexts, positions, mask=None):
    """The same log with dense rows."""
    X = np.zeros((len(contexts), K, K * contexts.shape[1]))
    for a in range(K):
        X[:, a, a * contexts.shape[1] : (a + 1) * contexts.shape[1]] = contexts
    return BanditLog.from_dense(X, positions, mask)


@pytest.mark.parametrize("offered", [None, MASK, [ARMS[row][::-1].tolist() for row in MASK]])
def test_a_log_is_that_of_the_rows_written_out(offered):
    log = BanditLog.from_contexts(CONTEXTS, PICKS, arms=ARMS, offered=offered)
    dense = written_out(
        CONTEXTS, np.array([ARMS.tolist().index(pick) for pick in PICKS]), None if offered is None else MASK
    )
    np.testing.assert_array_equal(log.features.toarray(), dense.features)
    np.testing.assert_array_equal(log.offsets, dense.offsets)
    np.testing.assert_array_equal(log.chosen, dense.chosen)
    np.testing.assert_array_equal(log.arm_ids[log.chosen_rows], PICKS)
    for rounds in (slice(10, 20), slice(5, 30, 7), [3, 1, 2], slice(0, 0)):
        np.testing.assert_array_equal(log[rounds].features.toarray(), dense[rounds].features)
    if offered is None:
        assert np.shares_memory(log[10:20].features.contexts, log.features.contexts)
        assert log[[4, 2, 7]].features.which is None
    joined = BanditLog.concat([log[:9], log[9:]])
    np.testing.assert_array_equal(joined.features.toarray(), dense.features)
    np.testing.assert_array_equal(joined.arm_ids, log.arm_ids)
    again = pickle.loads(pickle.dumps(log))
    np.testing.assert_array_equal(again.arms(3), dense.arms(3))
    assert log.with_features(log.features.toarray()).arm_ids.tolist() == log.arm_ids.tolist()


def test_names_belong_to_the_context_and_weights_to_arms():
    log = BanditLog.from_contexts(CONTEXTS, PICKS, feature_names=["x", "y", "z"])
    assert log.feature_names == ("x", "y", "z")
    assert log.weight_names[:4] == ("a: x", "a: y", "a: z", "b: x")
    assert repr(log) == "BanditLog(40 rounds, 5 arms, 3 features x 5 arms, factored float64)"
    assert log.n_features == K * P


def test_arm_features_and_their_products():
    table = pa.table({"item": ARMS[::-1], "price": ITEMS[::-1, 0], "size": ITEMS[::-1, 1]})
    log = BanditLog.from_contexts(CONTEXTS, PICKS, arm_features=table, feature_names=["x", "y", "z"])
    assert log.weight_names == ("price", "size", *(f"{c}*{q}" for c in "xyz" for q in ("price", "size")))
    np.testing.assert_array_equal(log.arms(0)[:, :2], ITEMS[::-1])
    np.testing.assert_allclose(log.arms(4)[2, 4:6], CONTEXTS[4, 1] * ITEMS[2])
    same = BanditLog.from_contexts(CONTEXTS, PICKS, arms=sorted(ARMS), arm_features=ITEMS[::-1])
    np.testing.assert_array_equal(same.features.toarray(), log.features.toarray())
    frame = pd.DataFrame({"price": ITEMS[:, 0], "size": ITEMS[:, 1]}, index=ARMS)
    indexed = BanditLog.from_contexts(CONTEXTS, PICKS, arm_features=frame)
    np.testing.assert_array_equal(indexed.features.toarray(), log.features.toarray())


@pytest.mark.parametrize("kind", [pa.table, pl.DataFrame, pd.DataFrame])
def test_contexts_are_any_table(kind):
    columns = {"age": CONTEXTS[:, 0], "sex": np.array(["f", "m"] * (N // 2)), "rich": CONTEXTS[:, 1] > 0}
    log = BanditLog.from_contexts(kind(columns), list(PICKS))
    # Without the column of ones nothing would tell the arms apart where the category has its reference level.
    assert log.feature_names == ("1", "age", "sex=m", "rich")
    assert log.categories == {"sex": ("f", "m")}
    np.testing.assert_array_equal(log.features.contexts[:, [0, 2]], [[1.0, 0.0], [1.0, 1.0]] * (N // 2))
    some = BanditLog.from_contexts(kind(columns), pd.Series(PICKS), feature_names=["rich", "age"])
    assert some.feature_names == ("rich", "age")


@pytest.mark.parametrize(
    "ids", [[3, 1, 10], ["x", "yy", "z"], [2.5, 1.0, 3.0], [True, False, True], [np.datetime64("2024-01-01")] * 2 + [0]]
)
def test_ids_of_any_one_kind_are_sorted_by_value(ids):
    if ids[-1] == 0 and isinstance(ids[0], np.datetime64):
        ids[-1] = np.datetime64("2023-01-01")
    log = BanditLog.from_contexts(np.ones((3, 1)), ids)
    assert log.features.arms.tolist() == sorted(set(np.array(ids).tolist()))
    assert log.arm_ids[log.chosen_rows].tolist() == np.array(ids).tolist()


def test_offers_that_arrow_or_polars_have_and_ids_that_read_the_same():
    lists = [ARMS[row].tolist() for row in MASK]
    want = BanditLog.from_contexts(CONTEXTS, PICKS, offered=lists)
    for offered in (pa.array(lists), pl.Series(lists), pd.Series(lists), pa.chunked_array([lists[:7], lists[7:]])):
        got = BanditLog.from_contexts(CONTEXTS, PICKS, offered=offered)
        np.testing.assert_array_equal(got.features.which, want.features.which)
    log = BanditLog.from_contexts(np.ones((2, 1)), ["3", "10"], arms=[10, 3])
    assert log.chosen.tolist() == [1, 0]


ONES = np.ones((3, 1))
BAD = {
    "which is not one of the 2 arms": ((ONES, ["a", "b", "c"]), {"arms": ["a", "b"]}),
    "round 1 picks 'b', which it does not offer": (
        (ONES, ["a", "b", "c"]),
        {"offered": [["a", "b"], ["a", "c"], ["c", "b"]]},
    ),
    "round 2 offers 'q', which is not one": (
        (ONES, ["a", "b", "a"]),
        {"arms": ["a", "b"], "offered": [["a", "b"], ["a", "b"], ["a", "q"]]},
    ),
    "round 2 offers no arm": ((ONES, ["a", "b", "a"]), {"offered": [["a", "b"], ["a", "b"], []]}),
    "round 0 offers the arm 'a' twice": ((ONES, ["a", "b", "a"]), {"offered": [["a", "a"], ["a", "b"], ["a"]]}),
    "a mask must be boolean": ((ONES, [1, 0, 1]), {"offered": np.array([[1, 1], [1, 0], [1, 0]])}),
    "arms has 'a' twice": ((ONES, ["a", "b", "a"]), {"arms": ["a", "b", "a"]}),
    "there is one arm, 'a'": ((ONES, ["a", "a", "a"]), {}),
    "mixes ids of different kinds": ((ONES, ["a", 1, "b"]), {}),
    "chosen, round 1, is missing": ((ONES, ["a", None, "b"]), {}),
    "round 1, feature 0 is nan": ((np.array([[1.0], [np.nan], [1.0]]), ["a", "b", "a"]), {}),
    "round 2, feature 'age' is inf": (
        (np.array([[1.0], [0.0], [np.inf]]), ["a", "b", "a"]),
        {"feature_names": ["age"]},
    ),
    "contexts has shape (3,)": ((np.ones(3), ["a", "b", "a"]), {}),
    "contexts has no columns": ((np.ones((3, 0)), ["a", "b", "a"]), {}),
    "contexts has 2 rows, chosen 3": ((np.ones((2, 1)), ["a", "b", "a"]), {}),
    "contexts has rows of different lengths": (([[1.0], [1.0, 2.0], [0.0]], ["a", "b", "a"]), {}),
    "contexts has dtype": ((np.array([["x"], ["y"], ["z"]]), ["a", "b", "a"]), {}),
    "no rounds": ((np.ones((0, 1)), []), {}),
    "chosen has shape (3, 1)": ((ONES, np.ones((3, 1))), {}),
    "chosen is a str": ((ONES, "aba"), {}),
    "offered has 3 columns for 2 arms": (
        (ONES, ["a", "b", "a"]),
        {"arms": ["a", "b"], "offered": np.ones((3, 3), dtype=bool)},
    ),
    "pass arms= with all of them": ((ONES, ["a", "b", "a"]), {"offered": np.ones((3, 3), dtype=bool)}),
    "offered has 2 rows for 3 rounds": ((ONES, ["a", "b", "a"]), {"offered": np.ones((2, 2), dtype=bool)}),
    "offered has 2 lists for 3 rounds": ((ONES, ["a", "b", "a"]), {"offered": [["a"], ["b"]]}),
    "round 0, is 'ab'": ((ONES, ["a", "b", "a"]), {"offered": ["ab", "ab", "ab"]}),
    "rows of 1 and of 2 flags": ((ONES, ["a", "b", "a"]), {"offered": [[True, True], [True], [True, True]]}),
    "arm_features has 3 rows for 2 arms": (
        (ONES, ["a", "b", "a"]),
        {"arms": ["a", "b"], "arm_features": np.ones((3, 2))},
    ),
    "no row for arm 'b'": (
        (ONES, ["a", "b", "a"]),
        {"arms": ["a", "b"], "arm_features": pa.table({"arm": ["a"], "p": [1.0]})},
    ),
    "has the arm 'a' twice": (
        (ONES, ["a", "b", "a"]),
        {"arm_features": pa.table({"arm": ["a", "a", "b"], "p": [1.0, 2.0, 3.0]})},
    ),
    "feature_names has 2 names for 1": ((ONES, ["a", "b", "a"]), {"feature_names": ["x", "y"]}),
    "no column 'ages'": ((pa.table({"age": [1.0, 2.0, 3.0]}), ["a", "b", "a"]), {"feature_names": ["ages"]}),
    "times has shape (2,)": ((ONES, ["a", "b", "a"]), {"times": [1, 2]}),
}


@pytest.mark.parametrize("words", list(BAD))
def test_bad_input_is_refused_in_one_line(words):
    positional, named = BAD[words]
    with pytest.raises(InputError) as caught:
        BanditLog.from_contexts(*positional, **named)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_logs_of_other_arms_are_not_joined():
    one = BanditLog.from_contexts(ONES, ["a", "b", "a"])
    with pytest.raises(InputError, match="different arms"):
        BanditLog.concat([one, BanditLog.from_contexts(ONES, ["a", "c", "a"])])
    with pytest.raises(InputError, match="lay out their features differently"):
        BanditLog.concat([one, one.with_features(one.features.toarray(), None)])


def test_a_log_takes_the_memory_of_its_contexts():
    contexts = np.ones((20_000, 50))
    chosen = np.arange(20_000) % 20
    tracemalloc.start()
    log = BanditLog.from_contexts(contexts, chosen)
    policy = LinearPolicy.of(np.ones(log.n_features), log)
    policy.choose(log[5000:5100])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.shares_memory(log.features.contexts, contexts)
    assert peak < contexts.nbytes


def test_policies_follow_arms_in_any_order_and_survive_a_file(tmp_path):
    log = BanditLog.from_contexts(CONTEXTS, PICKS, arms=ARMS, feature_names=["x", "y", "z"])
    policy = LinearPolicy.of(RNG.normal(size=log.n_features), log)
    policy.save(tmp_path / "policy.json")
    again = LinearPolicy.load(tmp_path / "policy.json")
    assert again == policy
    assert again.arms == tuple(ARMS.tolist())
    table = pa.table({"z": CONTEXTS[:, 2], "x": CONTEXTS[:, 0], "y": CONTEXTS[:, 1]})
    kept = np.isin(PICKS, ["a", "c", "d"])
    other = BanditLog.from_contexts(table, PICKS, arms=sorted(ARMS))
    np.testing.assert_allclose(again.scores(other).reshape(N, K)[:, ::-1], policy.scores(log).reshape(N, K), atol=1e-12)
    fewer = BanditLog.from_contexts(CONTEXTS[kept], PICKS[kept])
    np.testing.assert_allclose(
        again.scores(fewer).reshape(-1, 3), policy.scores(log).reshape(N, K)[kept][:, [4, 2, 1]], atol=1e-12
    )
    with pytest.raises(InputError, match="does not know the arms"):
        again.scores(BanditLog.from_contexts(CONTEXTS, np.where(PICKS == "a", "new", PICKS)))
    with pytest.raises(InputError, match="lacks"):
        again.scores(BanditLog.from_contexts(CONTEXTS, PICKS, feature_names=["x", "y", "w"]))


def few_of_many(contexts, n=60, arms=50, offers=3, seed=9):
    """Rows of rounds that offer a few of many arms, each round arms of one half."""
    rng = np.random.default_rng(seed)
    which = np.concatenate(
        [half * 25 + np.sort(rng.choice(25, offers, replace=False)) for half in rng.integers(0, 2, n)]
    )
    table = rng.normal(size=(n, 3)) if contexts else None
    return FactoredRows(arms=np.arange(arms), contexts=table, which=which, bounds=np.arange(n + 1) * offers)


@pytest.mark.parametrize("contexts", [True, False])
def test_few_of_many_arms_give_what_rows_written_out_give(contexts):
    rows = few_of_many(contexts)
    dense, rng = rows.toarray(), np.random.default_rng(0)
    weights, values = rng.normal(size=rows.shape[1]), rng.random(len(rows))
    np.testing.assert_allclose(rows @ weights, dense @ weights, atol=1e-12)
    np.testing.assert_allclose(rows.T @ values, dense.T @ values, atol=1e-12)
    shares = np.full(len(rows), 1 / 3)
    p = rows.n_block
    blocks = (dense.T @ (shares[:, None] * dense)).reshape(50, p, 50, p)[np.arange(50), :, np.arange(50)]
    by_round = rows._by_round(shares)
    tables = np.ones((60, 1)) if rows.contexts is None else rows.contexts
    for given in (by_round, by_round.toarray()):
        np.testing.assert_allclose(arm_blocks(tables, given, np.ones(60)), blocks, atol=1e-12)


def test_groups_of_arms_are_found_piece_by_piece(monkeypatch):
    rows = few_of_many(contexts=False, n=400)
    seen = np.zeros(50, dtype=bool)
    seen[rows.which] = True
    whole = rows.groups
    monkeypatch.setattr(factored_products, "PIECE_VALUES", 7)
    np.testing.assert_array_equal(rows.groups, whole)
    # The arms of a half are linked by way of others; those never offered are alone.
    assert [len(set(whole[half][seen[half]])) for half in (slice(0, 25), slice(25, 50))] == [1, 1]
    assert whole[:25][seen[:25]][0] != whole[25:][seen[25:]][0]
    assert len(set(whole)) == 2 + np.count_nonzero(~seen)
