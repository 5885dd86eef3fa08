"""`--by`: many learners in one log, one table."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from onlooker import BanditLog, SuffixImitation, TrackingObserver, read_logs


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A long table of three shops, one of which is too short to say anything."""
    rng = np.random.default_rng(0)
    columns = {"shop": [], "round": [], "chosen": [], "price": [], "speed": []}
    for shop, n_rounds in (("a", 120), ("b", 90), ("c", 2)):
        X = rng.normal(size=(n_rounds, 4, 2))
        picks = (X @ rng.normal(size=2) + rng.gumbel(size=(n_rounds, 4))).argmax(axis=1)
        for t in range(n_rounds):
            for k in range(4):
                row = (shop, t, int(k == picks[t]), *X[t, k])
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    file = tmp_path_factory.mktemp("groups") / "log.csv"
    csv.write_csv(pa.table(columns), file)
    return file


def test_fit_prints_one_table_and_names_groups_without_an_answer(run, path, tmp_path):
    ran = run("fit", path, "--by", "shop", "--burn-in", "10", "--out", tmp_path / "weights.csv")
    assert ran.code == 0
    assert "2 groups; 1 group without an answer by shop" in ran.out
    assert ran.err.count("\n") == 1
    assert "(shop c): no answer: a burn-in of 10 rounds leaves nothing" in ran.err
    written = csv.read_csv(tmp_path / "weights.csv").to_pylist()
    log = read_logs(path, by="shop")["b"]
    expected = SuffixImitation(burn_in=10).fit(log).summary().coefficients[1]
    row = next(one for one in written if one["group"] == "b" and one["feature"] == "speed")
    assert row["estimate"] == expected.estimate
    assert row["low"] == expected.low


@pytest.mark.parametrize("command", ["fit", "track"])
def test_no_group_with_an_answer_is_refused_and_nothing_written(run, tmp_path, command):
    rows = {"shop": ["a"] * 3 + ["b"] * 3, "round": [1, 2, 3] * 2, "chosen": [1] * 6, "price": [1.0, 2, 3, 4, 5, 6]}
    csv.write_csv(pa.table(rows), tmp_path / "log.csv")
    ran = run(command, tmp_path / "log.csv", "--by", "shop", "--out", tmp_path / "out.csv")
    assert ran.code == 2
    assert "no shop has an answer: " in ran.err
    assert not (tmp_path / "out.csv").exists()


def test_json_has_every_group_and_what_they_share(run, path):
    ran = run("fit", path, "--by", "shop", "--pool", "--burn-in", "1", "--json")
    found = json.loads(ran.out)
    assert ran.code == 0
    assert set(found["groups"]) == {"a", "b", "c"}
    assert found["pooled"]["features"] == ["price", "speed"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pool"], "--pool: there is nothing to pool without --by"),
        (["--by", "shop", "--memory-limit", "2GB"], "--memory-limit: is for the log of one learner"),
        (["--by", "nobody"], "no column 'nobody'"),
        (["--by", "shop", "--out", "policy.json"], "is written as .csv or .parquet or .jsonl"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(refused, path, words, said):
    assert said in refused("fit", path, *words)


def test_track_follows_every_learner_and_prints_one_table(run, path, tmp_path):
    ran = run("track", path, "--by", "shop", "--out", tmp_path / "directions.parquet")
    assert ran.code == 0, ran.err
    assert "3 groups by shop" in ran.out
    assert [line.split()[0] for line in ran.out.splitlines() if line[:3] in {"a  ", "b  ", "c  "}] == ["a", "b", "c"]
    written = parquet.read_table(tmp_path / "directions.parquet").to_pylist()
    assert {(row["group"], row["feature"]) for row in written} == {(g, f) for g in "abc" for f in ("price", "speed")}
    one = json.loads(run("track", path, "--by", "shop", "--json").out)["groups"]["a"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = TrackingObserver().fit(read_logs(path, by="shop")["a"]).summary()
    assert one["coefficients"][0]["estimate"] == expected.coefficients[0].estimate


def test_track_refuses_a_state_for_many_learners(refused, path, tmp_path):
    said = refused("track", path, "--by", "shop", "--state", tmp_path / "state.json")
    assert "--state: is for the log of one learner" in said
    assert not (tmp_path / "state.json").exists()


def test_propensities_of_many_learners_are_one_table(run, refused, path, tmp_path):
    out = tmp_path / "with.parquet"
    ran = run("propensities", path, "--by", "shop", "--observer", "suffix", "--out", out)
    assert ran.code == 0, ran.err
    written = parquet.read_table(out).to_pandas()
    sums = written.groupby(["shop", "round"])["propensity"].sum()
    assert len(sums) == 212
    assert np.allclose(sums, 1)
    again = read_logs(out, by="shop")
    assert again["b"].feature_names == ("price", "speed")
    said = refused("propensities", path, "--by", "shop", "--out", tmp_path / "with.vw")
    assert "vw has no column for the learner" in said


def test_from_frame_tells_learners_apart(path):
    logs = BanditLog.from_frame(csv.read_csv(path), by="shop")
    assert {name: log.n_rounds for name, log in logs.items()} == {"a": 120, "b": 90, "c": 2}
    assert np.array_equal(logs["b"].features, read_logs(path, by="shop")["b"].features)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Fourteen learners of 60 rounds."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(14, 60, 3, 2))
    picks = (np.einsum("gtkd,gd->gtk", X, rng.normal(size=(14, 2))) + rng.gumbel(size=(14, 60, 3))).argmax(axis=2)
    group, number, arm = (places.ravel() for places in np.indices((14, 60, 3)))
    file = tmp_path_factory.mktemp("groups") / "many.parquet"
    columns = {"shop": [f"<b>{g}" for g in group], "round": number, "chosen": arm == np.repeat(picks.ravel(), 3)}
    parquet.write_table(pa.table(columns | {"price": X[..., 0].ravel(), "speed": X[..., 1].ravel()}), file)
    return file


@pytest.mark.parametrize("pool", [[], ["--pool"]])
def test_a_report_of_many_learners_is_one_overview(run, many, tmp_path, pool):
    ran = run("report", many, "--by", "shop", "--workers", "1", "--out", tmp_path / "page.html", *pool)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("14 learners, one for each value of 'shop': ")
    page = (tmp_path / "page.html").read_text()
    assert page.count("&lt;b&gt;") == 14
    assert "<b>" not in page
    assert ("partially pooled" in page) == bool(pool)
    found = json.loads(run("report", many, "--by", "shop", "--out", tmp_path / "page.html", "--json", *pool).out)
    assert len(found["learners"]) == 14


def test_pooling_a_few_learners_in_a_report_is_refused(refused, path, tmp_path):
    said = refused("report", path, "--by", "shop", "--pool", "--out", tmp_path / "page.html")
    assert "--pool: is for more than 12 learners" in said
    assert not (tmp_path / "page.html").exists()
