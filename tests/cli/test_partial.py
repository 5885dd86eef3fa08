"""Commands on logs that say less than the pick among all offers: each says how many rounds and picks that concerns."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from onlooker import BanditLog, SuffixImitation

N, K = 250, 6


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    price, speed = rng.normal(size=(2, N, K))
    chosen = (price - speed + rng.gumbel(size=(N, K))).argmax(axis=1)
    return pa.table(
        {
            "round": np.repeat(np.arange(N), K),
            "page": np.tile([f"p{one}" for one in np.arange(K) // 2], N),
            "picked_page": np.repeat([f"p{one // 2}" for one in chosen], K),
            "price": price.ravel(),
            "speed": speed.ravel(),
        }
    )


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("partial") / "log.csv"
    pa.csv.write_csv(table, path)
    return path


OPTIONS = ("--chosen", "picked_page", "--picked-group", "page")


def test_fit_says_how_many_picks_were_known_in_part(run, path, table):
    ran = run("fit", path, *OPTIONS, "--burn-in", "naive")
    assert ran.code == 0, ran.err
    assert "picks known to a set in 250 of 250 rounds, of 2 of 6 arms on average" in ran.out
    document = json.loads(run("fit", path, *OPTIONS, "--burn-in", "naive", "--json").out)
    assert any("picks known to a set in 250" in line for line in document["assumed"])
    log = BanditLog.from_frame(table, chosen="picked_page", picked_group="page")
    expected = SuffixImitation(burn_in="naive").fit(log).theta_
    assert [one["estimate"] for one in document["coefficients"]] == pytest.approx(expected, rel=1e-6)


def test_a_wrong_group_column_is_one_line(run, path):
    ran = run("fit", path, "--chosen", "picked_page", "--picked-group", "pag")
    assert ran.code == 2
    assert "'pag'" in ran.err
    assert "--picked-group" in ran.err


def test_convert_keeps_it(run, path, tmp_path):
    out = tmp_path / "log.parquet"
    ran = run("convert", path, out, *OPTIONS)
    assert ran.code == 0, ran.err
    ran = run("fit", out, "--burn-in", "naive")
    assert "picks known to a set in 250 of 250 rounds" in ran.out


@pytest.mark.parametrize("command", ["diagnose", "track", "report", "propensities"])
def test_other_commands_take_sets_and_say_so(run, table, tmp_path, command):
    short = tmp_path / "log.csv"
    pa.csv.write_csv(table.slice(0, 60 * K), short)
    out = {"report": ["--out", tmp_path / "page.html"], "propensities": ["--out", tmp_path / "log.parquet"]}
    more = ["--observer", "suffix"] if command == "propensities" else []
    ran = run(command, short, *OPTIONS, *out.get(command, []), *more)
    assert ran.code == 0, ran.err
    assert "picks known to a set in 60 of 60 rounds" in ran.out


def test_a_log_that_is_not_in_memory_is_fitted_alike(run, path):
    whole, scanned = (
        json.loads(run("fit", path, *OPTIONS, "--burn-in", "naive", "--json", *more).out)
        for more in ((), ("--memory-limit", "16GB"))
    )
    assert any("picks known to a set in 250 of 250 rounds" in line for line in scanned["assumed"])
    for one, other in zip(whole["coefficients"], scanned["coefficients"], strict=True):
        assert one["estimate"] == pytest.approx(other["estimate"], abs=1e-6)
        assert one["standard_error"] == pytest.approx(other["standard_error"], rel=1e-4)


@pytest.fixture(scope="module")
def gappy(table, tmp_path_factory):
    """Every third round is lost, and some cells are empty."""
    path = tmp_path_factory.mktemp("gappy") / "log.csv"
    page = np.array([one["picked_page"] for one in table.select(["picked_page"]).to_pylist()])
    own = np.array(table["page"].to_pylist())
    first = np.zeros(N * K, dtype=int)
    first[[t * K + int(np.argmax(own[t * K : t * K + K] == page[t * K])) for t in range(N)]] = 1
    price = table["price"].to_pylist()
    price[7], price[8], price[100] = None, None, None
    kept = pa.table({"round": table["round"], "chosen": first, "price": price, "speed": table["speed"]})
    pa.csv.write_csv(kept.filter(pa.array(np.asarray(table["round"]) % 3 != 2)), path)
    return path


def test_missing_cells_are_refused_with_the_way_out_or_left_out_and_counted(run, gappy):
    ran = run("fit", gappy)
    assert ran.code == 2
    assert "is missing, one of 3 such rows" in ran.err
    assert "(--missing leave-out)" in ran.err
    ran = run("fit", gappy, "--missing", "leave-out", "--burn-in", "naive")
    assert ran.code == 0, ran.err
    assert "2 rounds of 167 (12 rows) miss a feature and are left out" in ran.out
    assert "165 rounds" in ran.out


def test_lost_rounds_are_counted(run, gappy, tmp_path):
    ran = run("track", gappy, "--missing", "leave-out", "--gaps", "ids")
    assert ran.code == 0, ran.err
    assert "gaps by ids: 85 rounds of 250 were lost" in ran.out
    assert "leave --state out" in run("track", gappy, "--gaps", "ids", "--state", tmp_path / "state.json").err
    assert (
        "--gaps times needs a time of each round"
        in run("track", gappy, "--missing", "leave-out", "--gaps", "times").err
    )


@pytest.fixture(scope="module")
def by_user(table, tmp_path_factory):
    """Two users, whose rounds are numbered together."""
    user = np.where(np.asarray(table["round"]) % 2, "a", "b")
    path = tmp_path_factory.mktemp("users") / "log.csv"
    pa.csv.write_csv(table.append_column("user", pa.array(user)).slice(0, 120 * K), path)
    return path


FEATURES = ("--feature", "price", "--feature", "speed")


@pytest.mark.parametrize("command", ["fit", "diagnose", "track"])
def test_groups_are_counted_together(run, by_user, command):
    ran = run(command, by_user, *OPTIONS, *FEATURES, "--by", "user")
    assert ran.code == 0, ran.err
    assert "picks known to a set in 120 of 120 rounds" in ran.out


def test_a_comparison_leaves_out_who_needs_picks_and_says_so(run, by_user):
    ran = run("compare", by_user, *OPTIONS, *FEATURES)
    assert ran.code == 0, ran.err
    assert "left out, since they need every pick and offer: ibcb, ibcb-logit, blocks, change-point, ranked" in ran.out
    named = run("compare", by_user, *OPTIONS, *FEATURES, "--observer", "ibcb")
    assert named.code == 2
    assert "only a set of arms is known" in named.err


def test_gaps_of_groups_need_ids_of_their_own(run, gappy, tmp_path):
    read = pa.csv.read_csv(gappy)
    rounds = np.asarray(read["round"])
    shared, own = tmp_path / "shared.csv", tmp_path / "own.csv"
    user = pa.array(np.where(rounds % 2, "a", "b"))
    pa.csv.write_csv(read.append_column("user", user), shared)
    pa.csv.write_csv(read.append_column("user", user).set_column(0, "round", pa.array(rounds // 2)), own)
    options = ("--missing", "leave-out", "--gaps", "ids", "--by", "user", *FEATURES)
    ran = run("track", shared, *options)
    assert ran.code == 2
    assert "no two groups by user share a round id" in ran.err
    ran = run("track", own, *options)
    assert ran.code == 0, ran.err
    assert "gaps by ids: 83 rounds of 248 were lost" in ran.out
