"""Small manners: what cannot work is refused at once and in one line that says what to do."""

import json

import numpy as np
import pytest

from onlooker import BanditLog, Environment, LinUCB, simulate, write_log


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    write_log(simulate(Environment(3, 5), LinUCB(), n_rounds=400).log, path)
    return path


@pytest.fixture
def unread(monkeypatch):
    """Nothing of a log is read."""

    def read(*_, **__):
        raise AssertionError("the log was read")

    for name in ("open_log", "open_logs", "open_scan"):
        monkeypatch.setattr(f"onlooker.formats.opening.{name}", read)


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "--level", "1.5"),
        ("fit", "--level", "nan"),
        ("fit", "--l2", "-1"),
        ("fit", "--l2", "inf"),
        ("fit", "--burn-in", "1.5"),
        ("fit", "--burn-in", "-3"),
        ("fit", "--burn-in", "soon"),
        ("fit", "--seed", "-1"),
        ("fit", "--address", "127.0.0.1:6379"),
        ("fit", "--out", "no/such/folder/policy.json"),
        ("diagnose", "--level", "0"),
        ("diagnose", "--bins", "1"),
        ("track", "--level", "1"),
        ("track", "--ridge", "0"),
        ("track", "--exploration", "magic"),
        ("track", "--chart", "path.txt"),
        ("track", "--out", "no/such/folder/policy.json"),
        ("track", "--state", "no/such/folder/state.json"),
        ("report", "--out", "no/such/folder/report.html"),
        ("compare", "--out", "table.txt"),
        ("compare", "--out", "no/such/folder/table.csv"),
        ("compare", "--chart", "chart.pdf"),
        ("compare", "--observer", "magic"),
    ],
    ids=" ".join,
)
def test_options_are_checked_before_the_log_is_read(refused, unread, log, arguments):  # noqa: ARG001
    command, *options = arguments
    line = refused(command, log, *options)
    assert any(option in line for option in options) or "burn-in" in line


def test_targets_are_checked_before_anything_is_simulated(refused, monkeypatch):
    monkeypatch.setattr("onlooker.simulation.play.simulate", lambda *_, **__: pytest.fail("it went to work"))
    for options in (("compare", "--out", "t.txt"), ("demo", "--out", "no/such/x.html")):
        assert options[-1] in refused(*options)
    assert "no/such" in refused("simulate", "--out", "log.csv", "--truth", "no/such/truth.json")
    assert "no/such" in refused("convert", "in.csv", "no/such/log.parquet")


@pytest.mark.parametrize("command", ["fit", "track", "report"])
def test_a_pattern_that_nothing_matches(refused, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert "day*.parquet: no file matches: check the pattern" in refused(command, "day*.parquet")
    assert "no such file" in refused(command, "day.parquet")


def test_a_file_whose_name_looks_like_a_pattern_is_read(run, log, tmp_path):
    odd = tmp_path / "log[1].parquet"
    odd.write_bytes(log.read_bytes())
    assert run("fit", odd).code == 0


def test_tracking_a_log_without_a_choice_is_refused(refused, tmp_path):
    path, out = tmp_path / "log.csv", tmp_path / "policy.json"
    write_log(BanditLog(np.ones((5, 2)), np.arange(6), np.zeros(5, dtype=int)), path)
    assert "nothing to follow" in refused("track", path, "--out", out)
    assert not out.exists()


def test_the_0_1_loss_reports_no_likelihood(run, log):
    ran = run("fit", log, "--loss", "zero_one")
    assert "likelihood" not in ran.out
    assert "agreement with them" in ran.out
    found = json.loads(run("fit", log, "--loss", "zero_one", "--json").out)
    assert [found[name] for name in ("log_likelihood", "null_log_likelihood", "likelihood_ratio", "p_value")] == [
        None
    ] * 4
    assert "log-likelihood" in run("fit", log).out


def test_columns_of_a_diagnosis_stand_under_each_other_in_long_logs(log):
    from dataclasses import replace

    from onlooker import diagnose, read_log

    found = diagnose(read_log(log))
    far = [replace(b, start=10**k, stop=10**k + 1000) for k, b in enumerate(found.bins, 5)]
    lines = str(replace(found, bins=tuple(far))).splitlines()
    head = next(number for number, line in enumerate(lines) if line.lstrip().startswith("rounds "))
    table = lines[head : head + len(far) + 1]
    assert (
        len({line.index("  ", line.rindex(" to ") if " to " in line else line.index("rounds")) for line in table}) == 1
    )
