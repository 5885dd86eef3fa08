import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlooker.base.errors import InputError
from onlooker.logs.log import BanditLog
from strategies import Plain, assert_equal_logs, assert_same, plains


@pytest.fixture
def log():
    """Three rounds of 2, 3 and 1 arms, everything named."""
    return BanditLog(
        np.arange(12.0).reshape(6, 2),
        offsets=[0, 2, 5, 6],
        chosen=[1, 2, 0],
        feature_names=["price", "speed"],
        round_ids=["01", "02", "03"],
        arm_ids=list("abcdef"),
    )


def test_sizes(log):
    assert (log.n_rounds, log.n_features, len(log)) == (3, 2, 3)
    assert log.n_arms.tolist() == [2, 3, 1]
    assert log.chosen_rows.tolist() == [1, 4, 5]
    assert log.offsets.dtype == log.chosen.dtype == np.int64


@given(plains())
def test_holds_what_it_was_given(plain):
    log = plain.log()
    assert_same(log, plain)
    assert log.features.dtype == plain.dtype


@given(plains(), st.data())
def test_slices_like_a_list(plain, data):
    cut = data.draw(st.slices(len(plain.rounds)))
    part = plain.log()[cut]
    assert_same(part, Plain(plain.rounds[cut], plain.chosen[cut]))
    assert part.features.dtype == plain.dtype


@given(plains(), st.data())
def test_slice_of_a_slice(plain, data):
    n = len(plain.rounds)
    a = data.draw(st.integers(0, n))
    b = data.draw(st.integers(0, n))
    assert_same(plain.log()[a:][:b], Plain(plain.rounds[a:][:b], plain.chosen[a:][:b]))


@given(plains(), st.data())
def test_gathers_rounds_in_any_order(plain, data):
    picks = data.draw(st.lists(st.integers(-len(plain.rounds), len(plain.rounds) - 1)))
    expected = Plain([plain.rounds[t] for t in picks], [plain.chosen[t] for t in picks])
    assert_same(plain.log()[picks], expected)
    assert_same(plain.log()[np.array(picks, dtype=int)], expected)


@given(plains(), st.data())
def test_gathers_rounds_by_mask(plain, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(plain.rounds), max_size=len(plain.rounds)))
    keep = [t for t, kept in enumerate(mask) if kept]
    assert_same(plain.log()[mask], Plain([plain.rounds[t] for t in keep], [plain.chosen[t] for t in keep]))


def test_names_follow_their_rounds(log):
    assert log[1:].round_ids.tolist() == ["02", "03"]
    assert log[1:].arm_ids.tolist() == list("cdef")
    assert log[[2, 0]].round_ids.tolist() == ["03", "01"]
    assert log[[2, 0]].arm_ids.tolist() == list("fab")
    assert log[[2, 0]].feature_names == log[1:].feature_names == ("price", "speed")


def test_slices_are_views(log):
    assert np.shares_memory(log[1:].features, log.features)
    assert np.shares_memory(log[1:].chosen, log.chosen)
    assert np.shares_memory(log.suffix(2).features, log.features)
    assert np.shares_memory(log.arms(1), log.features)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_not_copied(dtype):
    features = np.ones((4, 3), dtype=dtype)
    assert np.shares_memory(BanditLog(features, [0, 4], [0]).features, features)
    dense = np.ones((2, 3, 4), dtype=dtype)
    assert np.shares_memory(BanditLog.from_dense(dense, [0, 1]).features, dense)
    assert np.shares_memory(BanditLog.from_dense(dense, [0, 1], mask=np.ones((2, 3))).features, dense)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, ">f4", ">f8", bool])
def test_other_numbers_become_float64(dtype):
    log = BanditLog(np.array([[1, 0], [0, 1]], dtype=dtype), [0, 2], [0])
    assert log.features.dtype == np.float64
    assert log.features.tolist() == [[1, 0], [0, 1]]


def test_strided_features_become_contiguous():
    log = BanditLog(np.arange(12.0).reshape(3, 4)[:, ::2], [0, 3], [0])
    assert log.features.flags.c_contiguous
    assert log.features.tolist() == [[0, 2], [4, 6], [8, 10]]


@pytest.mark.parametrize("name", ["features", "offsets", "chosen", "round_ids", "arm_ids"])
def test_arrays_are_read_only(log, name):
    for one in (log, log[1:], log[[0, 1]], pickle.loads(pickle.dumps(log))):
        with pytest.raises(ValueError, match="read-only"):
            getattr(one, name)[0] = 0


def test_the_callers_array_stays_writable():
    features = np.ones((2, 1))
    BanditLog(features, [0, 2], [0])
    features[0] = 3


def test_attributes_cannot_be_set_or_deleted(log):
    with pytest.raises(AttributeError, match=r"immutable.*'chosen'"):
        log.chosen = np.array([0])
    with pytest.raises(AttributeError, match=r"immutable.*'extra'"):
        log.extra = 1
    with pytest.raises(AttributeError, match=r"immutable.*'chosen'"):
        del log.chosen


@given(plains(), st.data())
def test_pickles(plain, data):
    log = plain.log(round_ids=[f"0{t}" for t in range(len(plain.rounds))])[data.draw(st.integers(0, 2)) :]
    for again in (pickle.loads(pickle.dumps(log)), copy.deepcopy(log)):
        assert_equal_logs(again, log)


def test_a_pickled_slice_leaves_the_rest_behind():
    log = BanditLog(np.zeros((10_000, 10)), np.arange(10_001), np.zeros(10_000, dtype=int))
    assert len(pickle.dumps(log[:10])) < 5_000


def test_ids_stay_as_they_are():
    log = BanditLog(np.eye(2), [0, 1, 2], [0, 0], round_ids=[2**53 + 1, 2**62 + 1], arm_ids=["01", "1"])
    assert log.round_ids.tolist() == [2**53 + 1, 2**62 + 1]
    assert log.arm_ids.tolist() == ["01", "1"]


def test_arms_counts_from_either_end(log):
    assert log.arms(-1).tolist() == log.arms(2).tolist() == [[10, 11]]
    for t in (3, -4):
        with pytest.raises(IndexError, match=rf"round {t} of a log with 3 rounds"):
            log.arms(t)


def test_suffix(log):
    assert log.suffix(0).n_rounds == 3
    assert log.suffix(3).n_rounds == 0
    for T in (-1, 4):
        with pytest.raises(InputError, match=f"suffix from round {T} of a log with 3 rounds"):
            log.suffix(T)


def test_one_round_is_not_a_log(log):
    with pytest.raises(TypeError, match=r"use log.arms\(1\)"):
        log[1]


def test_repr(log):
    assert repr(log) == "BanditLog(3 rounds, 1 to 3 arms, 2 features, float64)"
    assert repr(log[:1]) == "BanditLog(1 round, 2 arms, 2 features, float64)"
    assert repr(log[:0]) == "BanditLog(0 rounds, 0 arms, 2 features, float64)"


@given(plains())
def test_from_dense_with_mask(plain):
    n_arms = max(map(len, plain.rounds)) + 1
    dense = np.full((len(plain.rounds), n_arms, plain.n_features), np.nan, dtype=plain.dtype)
    mask = np.zeros(dense.shape[:2], dtype=bool)
    chosen = []
    for t, arms in enumerate(plain.rounds):
        # Spread the arms, so that positions among the offered differ from positions among all.
        places = [k + (k >= t % n_arms) for k in range(len(arms))]
        dense[t, places] = arms
        mask[t, places] = True
        chosen.append(places[plain.chosen[t]])
    assert_same(BanditLog.from_dense(dense, chosen, mask), plain)


@given(plains())
def test_from_dense_without_mask(plain):
    dense = np.array([[arms[0], arms[-1]] for arms in plain.rounds], dtype=plain.dtype)
    picks = [t % 2 for t in range(len(dense))]
    log = BanditLog.from_dense(dense, picks, feature_names=[f"x{j}" for j in range(plain.n_features)])
    assert_same(log, Plain(dense.tolist(), picks))
    assert log.feature_names == tuple(f"x{j}" for j in range(plain.n_features))


EYE = np.eye(3)
TWO = {"offsets": [0, 1, 3], "chosen": [0, 1]}
NAN = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
THIRD = 2**64 // 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": [1.0, 2.0]}, r"features has shape \(2,\): pass one row per offered arm"),
        ({"features": np.ones((3, 0))}, "features has no columns"),
        ({"features": [["a"], ["b"], ["c"]]}, "features has dtype <U1: pass real numbers"),
        ({"features": EYE * 1j}, "features has dtype complex128: pass real numbers"),
        ({"features": [[1.0], [1.0, 2.0], [1.0]]}, "features has rows of different lengths"),
        ({"features": [[None], [1], [2]]}, "features has dtype object: pass real numbers"),
        ({"offsets": [[0, 3]]}, r"offsets has shape \(1, 2\): pass one dimension"),
        ({"offsets": [0.0, 1.0, 3.0]}, "offsets has dtype float64: pass whole numbers"),
        ({"offsets": [0, 3]}, "offsets has 2 entries for 2 rounds: pass one more than rounds"),
        ({"offsets": []}, "offsets has 0 entries for 2 rounds"),
        ({"offsets": [1, 2, 3]}, "offsets runs from 1 to 3, but must run from 0 to 3 rows"),
        ({"offsets": [0, 1, 2]}, "offsets runs from 0 to 2, but must run from 0 to 3 rows"),
        ({"offsets": [0, 0, 3]}, "round 0 offers no arm"),
        ({"offsets": [0, 4, 3]}, "round 1 offers no arm"),
        ({"offsets": np.array([0, THIRD, 2 * THIRD - 2**64, 3]), "chosen": [0, 0, 0]}, "round 1 offers no arm"),
        ({"chosen": [0, 2]}, r"round 1 picks position 2, but offers 2 arms \(positions count from 0\)"),
        ({"chosen": [-1, 0]}, "round 0 picks position -1, but offers 1 arm "),
        ({"chosen": [0.0, 1.0]}, "chosen has dtype float64: pass whole numbers"),
        ({"chosen": [True, False]}, "chosen has dtype bool: pass whole numbers"),
        ({"feature_names": ["a", "b"]}, "feature_names has 2 names for 3 features"),
        ({"feature_names": ["a", "b", "a"]}, "feature_names has 'a' twice"),
        ({"feature_names": "abc"}, "feature_names must be a sequence of strings"),
        ({"feature_names": ["a", "b", 3]}, "feature_names must be a sequence of strings"),
        ({"features": NAN}, "round 1, arm 0, feature 1 is nan: fill missing values in"),
        ({"features": NAN, "feature_names": ["price", "speed"]}, "round 1, arm 0, feature 'speed' is nan"),
        ({"features": NAN, "feature_names": ["price"]}, "feature_names has 1 names for 2 features"),
        ({"features": NAN, "feature_names": np.array(["price", "speed"])}, "feature 'speed' is nan"),
        ({"features": [[0.0], [0.0], [-np.inf]]}, "round 1, arm 1, feature 0 is -inf"),
        ({"features": [[0.0], [np.inf], [-np.inf]]}, "round 1, arm 0, feature 0 is inf"),
        ({"round_ids": ["a"]}, r"round_ids has shape \(1,\), but 2 ids are needed"),
        ({"arm_ids": ["a", "b"]}, r"arm_ids has shape \(2,\), but 3 ids are needed"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        BanditLog(**({"features": EYE} | TWO | arguments))
    assert "\n" not in str(caught.value)


def test_large_values_are_not_taken_for_infinite():
    log = BanditLog(np.full((4, 2), np.finfo(np.float32).max), [0, 4], [0])
    assert np.isfinite(log.features).all()


DENSE = np.ones((2, 3, 1))


@pytest.mark.parametrize(
    ("X", "chosen", "mask", "message"),
    [
        (np.ones((2, 3)), [0, 0], None, r"X has shape \(2, 3\): pass an array of shape \(rounds, arms, features\)"),
        (DENSE, [0], None, "chosen has 1 entries, but X has 2 rounds"),
        (DENSE, [0, 3], None, "round 1 picks position 3, but offers 3 arms"),
        (DENSE, [0, 0], np.ones((3, 2)), r"mask has shape \(3, 2\), X offers \(2, 3\)"),
        (DENSE, [0, 3], np.ones((2, 3)), "round 1 picks position 3, but X has 3 arms"),
        (DENSE, [0, -1], np.ones((2, 3)), "round 1 picks position -1, but X has 3 arms"),
        (DENSE, [0, 1], [[1, 1, 1], [1, 0, 1]], "round 1 picks arm 1, which the mask says was not offered"),
    ],
)
def test_from_dense_refuses(X, chosen, mask, message):
    with pytest.raises(InputError, match=message):
        BanditLog.from_dense(X, chosen, mask)


def test_times_go_with_their_rounds():
    times = np.array(["2024-05-03", "2024-05-01", "2024-05-02"], dtype="datetime64[D]")
    log = BanditLog(np.eye(6), [0, 2, 4, 6], [0, 1, 0], times=times)
    assert log[1:].times.tolist() == times[1:].tolist()
    assert log[[2, 0]].times.tolist() == times[[2, 0]].tolist()
    assert pickle.loads(pickle.dumps(log)).times.tolist() == times.tolist()
    assert BanditLog(np.eye(2), [0, 2], [0]).times is None
    with pytest.raises(InputError, match="times has shape"):
        BanditLog(np.eye(2), [0, 2], [0], times=times)
    table = pa.table({"round": [1, 1, 2, 2], "chosen": [1, 0, 0, 1], "at": [9, 9, 4, 4], "x": [1.0, 2.0, 3.0, 4.0]})
    assert BanditLog.from_frame(table, order_by="at", features=["x"]).times.tolist() == [4, 9]
    assert BanditLog.from_frame(table, features=["x"]).times is None
