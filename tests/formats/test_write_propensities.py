"""Logs with propensities: they read back, and each format has the probability where its tools look for it."""

import csv
import json

import numpy as np
import pytest

from onlooker import BanditLog, read_log, write_propensities
from onlooker.base.errors import InputError


@pytest.fixture
def log():
    rng = np.random.default_rng(0)
    return BanditLog.from_dense(rng.normal(size=(20, 3, 2)), rng.integers(3, size=20), feature_names=["price", "speed"])


@pytest.fixture
def values():
    return np.random.default_rng(1).dirichlet(np.ones(3), size=20).ravel()


@pytest.mark.parametrize("name", ["log.parquet", "log.csv", "log.npz", "log.vw", "log.dsjson"])
def test_reads_back(log, values, name, tmp_path):
    write_propensities(log, values, tmp_path / name)
    again = read_log(tmp_path / name)
    np.testing.assert_array_equal(again.chosen, log.chosen)
    np.testing.assert_array_equal(again.dense, log.dense)
    assert again.feature_names == log.feature_names


def test_where_the_probabilities_are(log, values, tmp_path):
    for name in ("csv", "npz", "vw", "dsjson"):
        write_propensities(log, values, tmp_path / f"log.{name}")
    with (tmp_path / "log.csv").open() as file:
        assert [float(row["propensity"]) for row in csv.DictReader(file)] == values.tolist()
    arrays = np.load(tmp_path / "log.npz")
    picked = values[log.chosen_rows]
    np.testing.assert_array_equal(arrays["pscore"], picked)
    np.testing.assert_array_equal(arrays["pi_b"], values.reshape(20, 3, 1))
    labels = [line.split(" ")[0] for line in (tmp_path / "log.vw").read_text().splitlines() if line[:1].isdigit()]
    assert [float(label.split(":")[2]) for label in labels] == picked.tolist()
    events = [json.loads(line) for line in (tmp_path / "log.dsjson").read_text().splitlines()]
    assert [event["_label_probability"] for event in events] == picked.tolist()
    for t, event in enumerate(events):
        assert [event["p"][event["a"].index(k + 1)] for k in range(3)] == values[3 * t : 3 * t + 3].tolist()


def test_what_is_refused(log, values, tmp_path):
    with pytest.raises(InputError, match="does not say how to write it"):
        write_propensities(log, values, tmp_path / "log")
    with pytest.raises(InputError, match="did you mean 'parquet'"):
        write_propensities(log, values, tmp_path / "log", format="parqet")
    with pytest.raises(InputError, match="one per row"):
        write_propensities(log, values[1:], tmp_path / "log.csv")
    with pytest.raises(InputError, match="above 0"):
        write_propensities(log, np.zeros(60), tmp_path / "log.csv")
    assert not list(tmp_path.iterdir())
