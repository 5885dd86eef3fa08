"""The fit against published maximum-likelihood results; see data/README.md for their sources."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from onlooker.logs.log import BanditLog
from onlooker.observers.suffix_imitation import SuffixImitation

DATA = Path(__file__).parent.parent / "data"

TRAIN = {
    "price": (-0.0673580, 0.0033933),
    "time": (-1.7205514, 0.1603517),
    "change": (-0.3263409, 0.0594892),
    "comfort": (-0.9457256, 0.0649455),
}
MODECHOICE = {
    "air": (5.207433, 0.779055),
    "train": (3.869036, 0.443127),
    "bus": (3.163190, 0.450266),
    "gc": (-0.015501, 0.004408),
    "ttme": (-0.096125, 0.010440),
    "hinc_air": (0.013287, 0.010262),
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def train_columns():
    columns = {name: [] for name in ("round", "chosen", *TRAIN)}
    with (DATA / "train.csv").open() as file:
        for t, row in enumerate(csv.DictReader(file)):
            for arm in "12":
                columns["round"].append(t)
                columns["chosen"].append(int(row["choice"] == f"choice{arm}"))
                columns["price"].append(float(row[f"price{arm}"]) / 100 * 2.20371)
                columns["time"].append(float(row[f"time{arm}"]) / 60)
                columns["change"].append(float(row[f"change{arm}"]))
                columns["comfort"].append(float(row[f"comfort{arm}"]))
    return columns


def modechoice_columns():
    columns = {name: [] for name in ("round", "chosen", *MODECHOICE)}
    with (DATA / "modechoice.csv").open() as file:
        for row in csv.DictReader(file, delimiter=";"):
            mode = float(row["mode"])
            columns["round"].append(int(float(row["individual"])))
            columns["chosen"].append(int(float(row["choice"])))
            for number, name in ((1, "air"), (2, "train"), (3, "bus")):
                columns[name].append(float(mode == number))
            columns["gc"].append(float(row["gc"]))
            columns["ttme"].append(float(row["ttme"]))
            columns["hinc_air"].append(float(row["hinc"]) * (mode == 1))
    return columns


def maximum_likelihood(log):
    return SuffixImitation(burn_in="naive", l2=0.0, covariance="model").fit(log)


def assert_published(observer, published, units):
    """Within 1e-4 relative, or half a unit of the last digit that was published."""
    for row, (name, (estimate, error)) in zip(observer.summary().coefficients, published.items(), strict=True):
        assert row.name == name
        assert row.estimate == pytest.approx(estimate, rel=1e-4, abs=units / 2)
        assert row.standard_error == pytest.approx(error, rel=1e-4, abs=units / 2)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_train(make):
    observer = maximum_likelihood(BanditLog.from_frame(make(train_columns())))
    assert_published(observer, TRAIN, units=1e-7)
    assert round(observer.log_likelihood_, 4) == -1724.1500
    assert round(observer.null_log_likelihood_, 4) == -2030.2281


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_modechoice(make):
    observer = maximum_likelihood(BanditLog.from_frame(make(modechoice_columns())))
    assert_published(observer, MODECHOICE, units=1e-6)
    assert round(observer.log_likelihood_, 2) == -199.13


def test_a_single_precision_log_gives_the_same_answer():
    columns = train_columns()
    log = BanditLog.from_frame(pa.table(columns))
    single = BanditLog(log.features.astype(np.float32), log.offsets, log.chosen)
    np.testing.assert_allclose(maximum_likelihood(single).theta_, maximum_likelihood(log).theta_, rtol=1e-5)
