"""`--memory-limit`: the same answers from files that are not loaded, and a pattern for many of them."""

import json
import re

import numpy as np
import pytest

from onlooker import BanditLog, Environment, EpsilonGreedy, simulate, write_log
from onlooker.base import memory_limit
from onlooker.formats import scan
from onlooker.report import page as report_page


@pytest.fixture(autouse=True)
def _fresh_process(monkeypatch):
    # The process of the tests holds more than a fresh one.
    monkeypatch.setattr(memory_limit, "resident", lambda: 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    log = simulate(Environment(3, (2, 5), seed=1), EpsilonGreedy(0.1), 2400, seed=1).log
    write_log(log, folder / "all.parquet")
    for day in range(3):
        write_log(log[800 * day : 800 * (day + 1)], folder / f"day{day}.parquet")
    return folder


@pytest.mark.parametrize("command", ["fit", "diagnose", "track"])
def test_a_pattern_gives_what_the_whole_log_gives(run, folder, command):
    limited = run(command, folder / "day*.parquet", "--memory-limit", "600MB", "--json")
    assert limited.code == 0, limited.err
    whole = json.loads(run(command, folder / "all.parquet", "--json").out)
    found = json.loads(limited.out)
    assert found["assumed"].pop(1) == "3 files, in this order: day0.parquet, day1.parquet, day2.parquet"
    assert found | {"log": ""} == whole | {"log": ""}
    assert "LogScan(3 files, 3 features)" in run(command, folder / "day*.parquet", "--memory-limit", "600MB").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["fit", "day*.parquet", "--memory-limit", "10MB"], "--memory-limit is 10MB: .* give at least 500 MB"),
        (["fit", "day*.parquet", "--memory-limit", "much"], "--memory-limit is 'much': pass bytes, or text"),
        (["track", "night*.parquet", "--memory-limit", "1GB"], "no file matches"),
        (["diagnose", "all.parquet", "--memory-limit", "1GB", "--by", "shop"], "so leave it or --by shop out"),
        (["fit", "all.parquet", "--memory-limit", "1GB", "--engine", "ray"], "so leave it out"),
    ],
)
def test_refuses(run, folder, options, message):
    command, name, *rest = options
    ran = run(command, folder / name, *rest)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert re.search(message, ran.err)


@pytest.mark.parametrize("command", ["fit", "diagnose", "track", "report", "compare"])
def test_features_whose_matrices_do_not_fit_are_refused(run, tmp_path, command):
    rng = np.random.default_rng(0)
    write_log(BanditLog.from_dense(rng.normal(size=(40, 2, 3000)), rng.integers(0, 2, 40)), tmp_path / "wide.parquet")
    out = {"report": "page.html", "compare": "table.csv"}.get(command, "policy.json")
    written = [] if command == "diagnose" else ["--out", tmp_path / out]
    ran = run(command, tmp_path / "wide.parquet", "--memory-limit", "600MB", *written)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert re.search("3,000 features take matrices of .* MB, but the memory limit is 600 MB: raise it", ran.err)
    assert [path.name for path in tmp_path.iterdir()] == ["wide.parquet"]


@pytest.mark.parametrize("command", ["fit", "diagnose", "track", "report"])
def test_a_log_that_changes_is_refused(run, folder, tmp_path, monkeypatch, command):
    path = tmp_path / "log.parquet"
    path.write_bytes((folder / "all.parquet").read_bytes())
    # When rounds of the first part are taken; of a report, when it has read all and looks for its hash.
    place, name = (report_page, "Input") if command == "report" else (scan, "Held")
    original = getattr(place, name)

    class Swapping(original):
        @classmethod
        def of(cls, file, name=None):
            path.write_bytes((folder / "day1.parquet").read_bytes())
            return original.of(file, name)

        @classmethod
        def by(cls, log):
            path.write_bytes((folder / "day1.parquet").read_bytes())
            return original.by(log)

    monkeypatch.setattr(place, name, Swapping)
    monkeypatch.setattr(report_page, "Input", Swapping)
    written = [] if command == "diagnose" else ["--out", tmp_path / "out.html"]
    ran = run(command, path, "--memory-limit", "600MB", *written)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert re.search(r"log\.parquet: was cut from [\d,]+ to [\d,]+ bytes while it was read: .* run this again", ran.err)
    assert [one.name for one in tmp_path.iterdir()] == ["log.parquet"]
