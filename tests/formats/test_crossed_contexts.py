"""Products of context columns: the log of a table that has them written out, from every way in."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import BanditLog, InputError, SuffixImitation, read_log, scan_log
from onlooker.__main__ import main

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")

RNG = np.random.default_rng(6)
N = 600
AGE, HOUR = RNG.normal(size=N), RNG.normal(size=N)
DEVICE = RNG.choice(["pc", "phone", "tv"], N)
PICKS = RNG.choice(["a", "b", "c"], N)
TABLE = pa.table({"age": AGE, "hour": HOUR, "device": DEVICE, "shown": PICKS})
CONTEXT = ["1", "age", "hour", "device"]
CROSS = [("age", "hour"), ("age", "device")]
NAMES = ("1", "age", "hour", "device=phone", "device=tv", "age:hour", "age:device=phone", "age:device=tv")


def written_out():
    """The same contexts by hand."""
    flags = [(level == DEVICE).astype(float) for level in ("phone", "tv")]
    columns = [np.ones(N), AGE, HOUR, *flags, AGE * HOUR, *(AGE * flag for flag in flags)]
    return BanditLog.from_contexts(np.stack(columns, axis=1), PICKS)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("crossed") / "log.parquet"
    pq.write_table(TABLE, path)
    return path


def test_products_are_features_of_the_context(path):
    want = SuffixImitation(burn_in="naive").fit(written_out())
    frame = BanditLog.from_frame(TABLE, context=CONTEXT, arm="shown", cross=CROSS)
    for log in (frame, read_log(path, context=CONTEXT, arm="shown", cross=CROSS)):
        assert log.feature_names == NAMES
        np.testing.assert_array_equal(log.features.contexts, written_out().features.contexts)
        np.testing.assert_array_equal(SuffixImitation(burn_in="naive").fit(log).theta_, want.theta_)
    scan = scan_log(path, context=CONTEXT, arm="shown", cross=CROSS)
    np.testing.assert_allclose(SuffixImitation(burn_in="naive").fit(scan).theta_, want.theta_, atol=1e-9)


def test_a_policy_reads_other_files_with_its_products(path):
    log = read_log(path, context=CONTEXT, arm="shown", cross=CROSS)
    policy = SuffixImitation(burn_in="naive").fit(log).policy_
    again = read_log(path, arm="shown", like=policy)
    assert again.feature_names == NAMES
    np.testing.assert_array_equal(again.features.contexts, log.features.contexts)
    np.testing.assert_array_equal(policy.scores(again), policy.scores(log))


def test_the_command_crosses(path, monkeypatch, capsys):
    flags = [one for name in CONTEXT for one in ("--context", name)]
    monkeypatch.setattr("sys.argv", ["onlooker", "fit", str(path), *flags, "--arm", "shown", "--cross", "age:hour"])
    with suppress(SystemExit):
        main()
    assert "age:hour" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cross", "said"),
    [
        ([("age", "shown")], "'shown', which is not in the context"),
        ([("age", "price")], "'price', which is not in the context"),
        ([("1", "age")], "'1', which is not in the context"),
        ([("device", "device")], "its own square"),
        (True, "pairs of columns"),
    ],
)
def test_what_cannot_be_crossed_is_refused(path, cross, said):
    with pytest.raises(InputError, match=said):
        read_log(path, context=CONTEXT, arm="shown", cross=cross)
