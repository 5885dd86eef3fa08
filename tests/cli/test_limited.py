"""`--memory-limit`: the same answers from files that are not loaded, and a pattern for many of them."""

import json
import re

import pytest

from onlooker import Environment, EpsilonGreedy, memory_limit, simulate, write_log


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
    assert json.loads(limited.out) | {"log": ""} == whole | {"log": ""}
    assert "LogScan(3 files, 3 features)" in run(command, folder / "day*.parquet", "--memory-limit", "600MB").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["fit", "day*.parquet", "--memory-limit", "10MB"], "--memory-limit is 10MB: .* give at least 500 MB"),
        (["fit", "day*.parquet", "--memory-limit", "much"], "--memory-limit is 'much': pass bytes, or text"),
        (["track", "night*.parquet", "--memory-limit", "1GB"], "no file matches"),
        (["diagnose", "all.parquet", "--memory-limit", "1GB", "--by", "shop"], "give one of the two"),
        (["fit", "all.parquet", "--memory-limit", "1GB", "--engine", "ray"], "so leave it out"),
    ],
)
def test_refuses(run, folder, options, message):
    command, name, *rest = options
    ran = run(command, folder / name, *rest)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert re.search(message, ran.err)
