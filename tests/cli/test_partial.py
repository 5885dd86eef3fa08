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


@pytest.mark.parametrize("command", ["diagnose", "track", "report"])
def test_other_commands_take_sets_and_say_so(run, path, tmp_path, command):
    out = ["--out", tmp_path / "page.html"] if command == "report" else []
    ran = run(command, path, *OPTIONS, *out)
    assert ran.code == 0, ran.err
    assert "picks known to a set in 250 of 250 rounds" in ran.out


def test_a_memory_limit_is_refused_in_one_line(run, path):
    ran = run("fit", path, *OPTIONS, "--memory-limit", "16GB")
    assert ran.code == 2
    assert "known only in part, which needs the log in memory" in ran.err
