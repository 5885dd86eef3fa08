"""Features by name and categories of many levels stay sparse from file to fit, and give what an array gives."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from onlooker import (
    BanditLog,
    InputError,
    LinearPolicy,
    SuffixImitation,
    burn_in_sweep,
    read_log,
    scan_log,
    write_log,
)
from onlooker.base.errors import UnseenCategoryWarning
from onlooker.base.memory_limit import resident
from onlooker.logs import layouts
from onlooker.logs.layouts import SparseRows, stays_sparse


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", UnseenCategoryWarning)
        yield


def sparse_log(n_rounds=300, n_arms=4, n_features=400, active=5, seed=0):
    """Rounds whose arms have a few of many features."""
    rng = np.random.default_rng(seed)
    rows = n_rounds * n_arms
    columns = np.array([np.sort(rng.choice(n_features, active, replace=False)) for _ in range(rows)])
    # Every feature is somewhere, the last one in the first row, so that files have all of them.
    columns[: -(-n_features // active)] = np.resize(np.arange(n_features), (-(-n_features // active), active))
    values = rng.normal(size=(rows, active)).round(3) + 2.0
    matrix = csr_array((values.ravel(), columns.ravel(), np.arange(0, rows * active + 1, active)), (rows, n_features))
    scores = matrix @ rng.normal(size=n_features) + rng.gumbel(size=rows)
    chosen = scores.reshape(n_rounds, n_arms).argmax(axis=1)
    names = [f"ns^f{j}" for j in range(n_features)]
    return BanditLog.from_sparse(matrix, np.arange(n_rounds + 1) * n_arms, chosen, feature_names=names)


def as_array(log):
    return log.with_features(log.features.toarray(), log.feature_names)


@pytest.mark.parametrize("suffix", [".vw", ".dsjson", ".vw.gz"])
def test_files_of_named_features_come_back_sparse(tmp_path, suffix):
    log = sparse_log()
    write_log(log, tmp_path / f"log{suffix}")
    again = read_log(tmp_path / f"log{suffix}")
    assert isinstance(again.features, SparseRows)
    assert sorted(again.feature_names) == sorted(log.feature_names)
    order = [again.feature_names.index(name) for name in log.feature_names]
    np.testing.assert_array_equal(again.features.toarray()[:, order], log.features.toarray())
    np.testing.assert_array_equal(again.chosen, log.chosen)
    write_log(as_array(log), tmp_path / f"dense{suffix}")
    assert (tmp_path / f"dense{suffix}").stat().st_size > 0
    if not suffix.endswith(".gz"):
        assert (tmp_path / f"dense{suffix}").read_bytes() == (tmp_path / f"log{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_tables_of_a_sparse_log_hold_the_same_numbers(tmp_path, suffix):
    log = sparse_log(n_rounds=120)
    write_log(log, tmp_path / f"log{suffix}")
    np.testing.assert_array_equal(read_log(tmp_path / f"log{suffix}").features, log.features.toarray())


def test_few_or_dense_features_are_an_array(tmp_path):
    write_log(sparse_log(n_features=200), tmp_path / "few.vw")
    assert isinstance(read_log(tmp_path / "few.vw").features, np.ndarray)
    write_log(sparse_log(n_features=300, active=40, n_rounds=100), tmp_path / "dense.vw")
    assert isinstance(read_log(tmp_path / "dense.vw").features, np.ndarray)


def test_a_large_array_of_few_features_stays_sparse_where_that_is_smaller(monkeypatch):
    monkeypatch.setattr(layouts, "WRITTEN_OUT", 1 << 20)
    assert stays_sparse(10_000, 100, 100_000)
    assert not stays_sparse(10_000, 100, 900_000)


def test_products_with_what_arms_share_are_the_same_sparse_and_dense(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    lines = []
    for _ in range(60):
        lines.append(f"shared |u age:{rng.integers(1, 9)} c{rng.integers(3)}")
        lines += [f"{'0:0:1 ' if k == 0 else ''}|a id{rng.integers(90)} price:{rng.integers(9)}" for k in range(3)]
        lines.append("")
    (tmp_path / "log.vw").write_text("\n".join(lines))
    sparse = read_log(tmp_path / "log.vw", cross=True)
    monkeypatch.setattr(layouts, "SPARSE_FEATURES", 10_000)
    dense = read_log(tmp_path / "log.vw", cross=True)
    assert isinstance(sparse.features, SparseRows)
    assert isinstance(dense.features, np.ndarray)
    assert sparse.feature_names == dense.feature_names
    np.testing.assert_array_equal(sparse.features.toarray(), dense.features)


@pytest.fixture
def items():
    """A table with a category of many levels."""
    rng = np.random.default_rng(2)
    n, k = 400, 5
    ids = rng.integers(0, 1000, n * k)
    return pa.table(
        {
            "round": np.repeat(np.arange(n), k),
            "chosen": (np.arange(n * k) % k == np.repeat(rng.integers(0, k, n), k)).astype(int),
            "item": [f"i{one:04}" for one in ids],
            "price": rng.integers(0, 4, n * k).astype(float),
        }
    )


def test_a_category_of_many_levels_stays_sparse(items, monkeypatch):
    sparse = BanditLog.from_frame(items, categories=["item"])
    monkeypatch.setattr(layouts, "SPARSE_FEATURES", 10_000)
    dense = BanditLog.from_frame(items, categories=["item"])
    assert isinstance(sparse.features, SparseRows)
    assert (sparse.feature_names, sparse.categories) == (dense.feature_names, dense.categories)
    np.testing.assert_array_equal(sparse.features.toarray(), dense.features)
    shuffled = items.take(np.random.default_rng(0).permutation(len(items)))
    again = BanditLog.from_frame(shuffled, categories=["item"], order_by="round", like=None)
    assert again.n_rounds == sparse.n_rounds


def test_a_scan_of_a_category_of_many_levels_gives_what_reading_gives(items, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(items, tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet", categories=["item"])
    scan = scan_log(tmp_path / "log.parquet", categories=["item"], batch_rows=300)
    parts = list(scan)
    assert len(parts) > 3
    assert all(isinstance(part.features, SparseRows) for part in parts)
    np.testing.assert_array_equal(scan.read().features.toarray(), log.features.toarray())


def test_a_policy_of_a_sparse_log_is_saved_and_scores_other_files(items, tmp_path):
    log = BanditLog.from_frame(items, categories=["item"])
    policy = LinearPolicy(np.random.default_rng(0).normal(size=log.n_features), log.feature_names, log.categories)
    policy.save(tmp_path / "policy.json")
    policy = LinearPolicy.load(tmp_path / "policy.json")
    other = items.slice(0, 50)
    scores = policy.scores(BanditLog.from_frame(other, like=policy))
    np.testing.assert_allclose(scores, policy.scores(log)[:50], rtol=1e-12)
    new = other.set_column(2, "item", pa.array(["never seen"] * 50))
    with pytest.warns(UnseenCategoryWarning, match="never seen"):
        assert np.isfinite(policy.scores(BanditLog.from_frame(new, like=policy))).all()
    with pytest.raises(InputError, match="the log lacks"):
        policy.scores(sparse_log())


def test_unknown_and_missing_numbers_are_refused_as_of_an_array(items):
    column = items["price"].to_pylist()
    for bad, said in ((float("nan"), "missing"), (float("inf"), "is inf"), (None, "missing")):
        table = items.set_column(3, "price", pa.array([*column[:7], bad, *column[8:]], pa.float64()))
        with pytest.raises(InputError, match=rf"'price', row 8 .*{said}"):
            BanditLog.from_frame(table, categories=["item"])


@pytest.mark.parametrize("suffix", [".vw", ".dsjson"])
def test_files_in_parts_are_fitted_as_the_whole(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(layouts, "SPARSE_FEATURES", 30)
    monkeypatch.setattr(layouts, "SPARSE_SHARE", 0.1)
    log = sparse_log(n_rounds=900, n_features=40, active=3)
    for day in range(3):
        write_log(log[300 * day : 300 * (day + 1)], tmp_path / f"day{day}{suffix}")
    scan = scan_log(str(tmp_path / f"day*{suffix}"), batch_rows=500)
    whole = scan.read()
    assert isinstance(whole.features, SparseRows)
    options = {"burn_in": 100, "l2": 0.01}
    apart, together = (SuffixImitation(**options).fit(one) for one in (scan, whole))
    np.testing.assert_allclose(apart.theta_, together.theta_, atol=1e-6)
    np.testing.assert_allclose(apart.loss_, together.loss_, rtol=1e-9)
    curves = [burn_in_sweep(one, [0.0, 0.6], l2=0.01).thetas for one in (scan, whole)]
    np.testing.assert_allclose(*curves, atol=1e-4)


def test_later_files_take_the_layout_of_the_first(tmp_path):
    write_log(sparse_log(n_rounds=200), tmp_path / "1.vw")
    (tmp_path / "2.vw").write_text("0:0:1 |ns f1:2\n|ns f2:1\n\n")
    parts = list(scan_log(str(tmp_path / "*.vw")))
    assert {type(part.features) for part in parts} == {SparseRows}


def test_one_event_with_many_features_stays_small(tmp_path):
    event = {"_labelIndex": 0, "c": {"_multi": [{"a": {f"w{j}": 1 for j in range(3000)}}, {"a": {"v": 1}}]}}
    (tmp_path / "log.dsjson").write_text(
        "\n".join(
            [json.dumps(event)]
            + [json.dumps({"_labelIndex": 0, "c": {"_multi": [{"a": {"w1": 1}}, {"a": {"v": 1}}]}})] * 200
        )
    )
    assert isinstance(read_log(tmp_path / "log.dsjson").features, SparseRows)


def test_more_weights_than_a_matrix_has_room_for_are_fitted_in_parts_too(tmp_path):
    log = sparse_log(n_rounds=400, n_features=3500, active=9)
    write_log(log, tmp_path / "log.vw")
    # More than the tests before have left behind.
    limit = max(1_100_000_000, 12 * (resident() or 0))
    whole, scan = read_log(tmp_path / "log.vw"), scan_log(tmp_path / "log.vw", batch_rows=300, memory_limit=limit)
    apart, together = (SuffixImitation(burn_in=50, l2=0.01).fit(one) for one in (scan, whole))
    np.testing.assert_allclose(apart.theta_, together.theta_, atol=1e-4)
    np.testing.assert_allclose(apart.loss_, together.loss_, rtol=1e-6)
    assert apart.agreement_ == together.agreement_
    assert apart.covariance_ is None
