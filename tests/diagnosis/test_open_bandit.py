"""A fashion shop's own logs: picks at random, and picks of a Thompson sampler trained for a month before."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from onlooker.diagnosis import diagnose
from onlooker.formats import read_log

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.ColumnsLeftOutWarning")


def test_picks_at_random(data_folder):
    found = diagnose(read_log(data_folder / "obd" / "random" / "women"))
    assert found.verdict == "no preference"
    # Published: a likelihood ratio of 12.07 on 17 degrees of freedom; the score test is its twin.
    assert found.tests[0].statistic == pytest.approx(12.07, abs=0.5)
    assert found.rank == 17


@pytest.mark.slow
def test_a_sampler_that_goes_on_learning(data_folder):
    folder = data_folder / "obd" / "bts" / "women"
    found = diagnose(read_log(folder))
    assert found.verdict == "moving"
    assert found.tests[-2].p_value < 1e-6
    # The shop kept the probabilities of its picks, which nothing in `diagnose` sees: the policy does move. For the
    # ten items picked most, the probability changes by more than 30% on average from one half to the other.
    with pa.input_stream(str(folder / "women.csv.gz"), compression="gzip") as stream:
        table = pyarrow.csv.read_csv(stream)
    items, given = table["item_id"].to_numpy(), table["propensity_score"].to_numpy()
    most = np.argsort(-np.bincount(items))[:10]
    early = np.arange(len(items)) < len(items) // 2
    changes = [np.log(np.median(given[~early & (items == i)]) / np.median(given[early & (items == i)])) for i in most]
    assert np.mean(np.abs(changes)) > np.log(1.3)
