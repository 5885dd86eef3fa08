"""Several picks a round: each position is a choice among the arms that are left."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import PowerRule, SuffixImitation, burn_in_sweep
from onlooker.base.errors import InputError
from onlooker.formats import read_log, scan_log
from onlooker.imitation.burn_in import HeldOut
from onlooker.logs.log import BanditLog

THETA = np.array([1.0, -0.5, 0.3])


def make_slates(n=200, arms=6, filled=3, seed=0):
    """Rows of slates that a Plackett-Luce learner fills; positions from 1, missing where an arm is not shown."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, arms, 3))
    order = np.argsort(-(features @ THETA + rng.gumbel(size=(n, arms))), axis=1)
    position = np.full((n, arms), np.nan)
    for k in range(filled):
        position[np.arange(n), order[:, k]] = k + 1
    return pa.table(
        {
            "round": np.repeat(np.arange(n) + 100, arms),
            "time": np.repeat(np.arange(n) * 5, arms),
            "arm": np.tile(np.arange(arms), n),
            "position": pa.array(position.ravel(), from_pandas=True),
            **{f"f{j}": features[:, :, j].ravel() for j in range(3)},
        }
    )


def with_column(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def by_position(table):
    """The same slates with a row per position and arm, those that were shown before included."""
    rows, position, chosen = [], [], []
    for start in range(0, len(table), 6):
        places = table["position"].to_pylist()[start : start + 6]
        for k in (1, 2, 3):
            rows += range(start, start + 6)
            position += [k] * 6
            chosen += [int(place == k) for place in places]
    found = with_column(table.take(rows), "position", position)
    return found.append_column("chosen", pa.array(chosen))


def assert_same(log, expected):
    assert np.array_equal(log.dense, expected.dense)
    assert np.array_equal(log.offsets, expected.offsets)
    assert np.array_equal(log.chosen, expected.chosen)
    assert log.round_ids.tolist() == expected.round_ids.tolist()
    assert log.arm_ids.tolist() == expected.arm_ids.tolist()


OPTIONS = {"arm": "arm", "order_by": "time", "slate": "position"}


def test_positions_are_rounds_among_what_is_left():
    table = make_slates()
    log = BanditLog.from_frame(table, **OPTIONS)
    assert log.n_rounds == 600
    assert log.n_arms.tolist() == [6, 5, 4] * 200
    assert log.round_ids.tolist() == np.repeat(np.arange(200) + 100, 3).tolist()
    assert log.times.tolist() == np.repeat(np.arange(200) * 5, 3).tolist()
    picked = log.arm_ids[log.chosen_rows].reshape(200, 3)
    places = np.array(table["position"].to_pylist(), dtype=float).reshape(200, 6)
    assert np.array_equal(picked, np.argsort(np.where(np.isnan(places), 9, places), axis=1)[:, :3])


@pytest.mark.parametrize("mark", [0, -1])
def test_what_is_not_shown_may_be_marked(mark):
    table = make_slates()
    marked = with_column(table, "position", [mark if p is None else int(p) for p in table["position"].to_pylist()])
    expected = BanditLog.from_frame(table, **OPTIONS)
    assert_same(BanditLog.from_frame(marked, **OPTIONS), expected)
    flags = pa.array([int(p is not None) for p in table["position"].to_pylist()])
    assert_same(BanditLog.from_frame(marked.append_column("chosen", flags), **OPTIONS), expected)


def test_positions_may_count_from_zero():
    table = make_slates()
    less = with_column(table, "position", [None if p is None else int(p) - 1 for p in table["position"].to_pylist()])
    assert_same(BanditLog.from_frame(less, **OPTIONS), BanditLog.from_frame(table, **OPTIONS))


def test_a_row_per_position_and_arm():
    table = make_slates()
    assert_same(BanditLog.from_frame(by_position(table), **OPTIONS), BanditLog.from_frame(table, **OPTIONS))


@pytest.mark.parametrize("shape", [make_slates, lambda: by_position(make_slates())])
def test_slates_are_scanned(tmp_path, shape):
    pq.write_table(shape(), tmp_path / "log.parquet")
    scan = scan_log(tmp_path / "log.parquet", batch_rows=100, **OPTIONS)
    assert len(list(scan)) > 5
    assert_same(scan.read(), read_log(make_slates(), **OPTIONS))


def test_candidates_may_be_slates():
    table = make_slates(50)
    rows = []
    for start in range(0, len(table), 6):
        some = table.slice(start, 6).to_pylist()
        arms = [{"id": one["arm"], **{name: one[name] for name in ("position", "f0", "f1", "f2")}} for one in some]
        rows.append({"time": some[0]["time"], "candidates": arms})
    log = BanditLog.from_frame(pa.Table.from_pylist(rows), order_by="time", slate="position")
    expected = BanditLog.from_frame(table, **OPTIONS)
    assert np.array_equal(log.dense, expected.dense)
    assert np.array_equal(log.chosen, expected.chosen)


def test_the_assumption_is_said(tmp_path):
    from onlooker.formats.opening import open_log

    pq.write_table(make_slates(), tmp_path / "log.parquet")
    said = "\n".join(open_log(tmp_path / "log.parquet", OPTIONS).assumed)
    assert "slates by 'position': positions in rising order, each a choice among the arms not yet picked" in said
    assert "picks from" not in said


@pytest.mark.parametrize("burn_in", [100, 101, 0.333, "rule", "auto", PowerRule(0.8)])
def test_burn_ins_cut_between_slates(tmp_path, burn_in):
    table = make_slates(500, seed=4)
    log = BanditLog.from_frame(table, **OPTIONS)
    observer = SuffixImitation(burn_in=burn_in).fit(log)
    assert observer.burn_in_ % 3 == 0
    if not isinstance(burn_in, str):
        pq.write_table(table, tmp_path / "log.parquet")
        scan = scan_log(tmp_path / "log.parquet", batch_rows=500, **OPTIONS)
        again = SuffixImitation(burn_in=burn_in).fit(scan)
        assert again.burn_in_ == observer.burn_in_
        assert np.allclose(again.theta_, observer.theta_, atol=1e-8)


def test_sweeps_and_held_out_parts_keep_slates_whole():
    log = BanditLog.from_frame(make_slates(500, seed=4), **OPTIONS)
    assert (burn_in_sweep(log, [0.3, 0.5, 0.8, 0.9]).burn_ins % 3 == 0).all()
    assert (HeldOut().curve(log).burn_ins % 3 == 0).all()


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_other_logs_are_cut_as_before():
    rng = np.random.default_rng(0)
    log = BanditLog(rng.normal(size=(60, 2)), np.arange(0, 61, 2), np.zeros(30, dtype=int), round_ids=np.zeros(30))
    assert SuffixImitation(burn_in=7).fit(log).burn_in_ == 7


def test_intervals_cover_what_slates_were_made_with():
    # A choice at one position says nothing about the error of the next, so that all of them count.
    hits = []
    for seed in range(40):
        observer = SuffixImitation(burn_in="naive", l2=0.0).fit(
            BanditLog.from_frame(make_slates(150, seed=seed), **OPTIONS)
        )
        hits.append(np.abs(observer.theta_ - THETA) < 1.96 * np.sqrt(np.diag(observer.covariance_)))
    assert 0.88 < np.mean(hits) < 0.995


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"position": [1, 1, None]}, "round 1, row 2 .* has the 'position' of another pick"),
        ({"position": [None, None, None]}, "round 1, row 1 .* has no pick"),
        ({"position": [1.5, None, None]}, "column 'position', row 1 .* is 1.5: positions are whole numbers"),
        ({"position": [1, 2, None], "chosen": [1, 1, 1]}, "row 3 .* is picked but has no 'position'"),
        ({"position": [1, 0, 2]}, "is 0 once in every round"),
        ({"position": ["a", "b", None]}, "positions of a slate are numbers"),
        ({"position": [1, 2, None], "chosen": [1, 2, 0]}, "column 'chosen', row 2 .* is 2"),
        ({"position": [1, 1, 2], "chosen": [1, 0, 0]}, "has no pick at position 2"),
        ({"position": [1, 1, 2], "chosen": [1, 0, 1], "arm": [7, 8, 7]}, "picks arm 7 again"),
    ],
)
def test_slates_that_are_none(rows, message):
    table = pa.table({"round": [1, 1, 1], "x": [1.0, 2.0, 4.0], **rows})
    with pytest.raises(InputError, match=message):
        BanditLog.from_frame(table, slate="position", arm="arm" if "arm" in rows else None)
