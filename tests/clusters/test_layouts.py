"""Contexts, normalised logs and sparse text in parts, here and on a cluster: the answers of the log in memory."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import BanditLog, SuffixImitation, burn_in_sweep, read_log, scan_log, write_log
from onlooker.clusters import RayParts
from onlooker.formats import LogScan

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")

N, K, P, ITEMS = 3000, 5, 4, 12


def picks(scores, seed):
    return (scores + np.random.default_rng(seed).gumbel(size=scores.shape)).argmax(axis=1)


def in_files(table, folder, name):
    """A table in four files."""
    for number in range(4):
        pq.write_table(table.slice(number * N // 4, N // 4), folder / f"{name}{number}.parquet")
    return f"{folder}/{name}*.parquet"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Where each log is, and the options that read it."""
    folder, rng = tmp_path_factory.mktemp("layouts"), np.random.default_rng(3)
    contexts = rng.normal(size=(N, P))
    arms = np.array(["a", "b", "c", "d", "e"])[picks(contexts @ rng.normal(size=(P, K)), 1)]
    columns = {f"x{j}": contexts[:, j] for j in range(P)}
    by_arm = in_files(pa.table({**columns, "shown": arms}), folder, "contexts")

    features = rng.normal(size=(ITEMS, 3))
    pq.write_table(
        pa.table({"item": np.arange(ITEMS), **{f"f{j}": features[:, j] for j in range(3)}}), folder / "items.parquet"
    )
    offered = np.array([rng.choice(ITEMS, 4, replace=False) for _ in range(N)])
    scores = (features @ [1.0, -1.0, 0.5])[offered] + contexts[:, :1] * features[offered][:, :, 0]
    bought = offered[np.arange(N), picks(scores, 2)]
    by_id = in_files(pa.table({"age": contexts[:, 0], "offered": offered.tolist(), "bought": bought}), folder, "orders")

    rows = np.where(rng.random((N * 4, 300)) < 0.02, 1.0, 0.0)
    rows[:, 0] = rng.normal(size=N * 4)
    weights = rng.normal(size=300)
    log = BanditLog.from_dense(rows.reshape(N, 4, 300), picks((rows @ weights).reshape(N, 4), 4))
    for number in range(4):
        part = slice(number * N // 4, (number + 1) * N // 4)
        write_log(log[part], folder / f"text{number}.vw")
    return {
        "contexts": (by_arm, {"context": [f"x{j}" for j in range(P)], "arm": "shown"}),
        "items": (
            by_id,
            {"items": folder / "items.parquet", "offered": "offered", "arm": "bought", "context": ["age"]},
        ),
        "sparse": (f"{folder}/text*.vw", {}),
    }


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """A log that is no larger than a sample would be fitted as one in memory."""
    monkeypatch.setattr(LogScan, "sample_bytes", 30_000)


def close(found, whole):
    """Weights to 1e-6, errors to four digits."""
    np.testing.assert_allclose(found.theta_, whole.theta_, atol=1e-6)
    np.testing.assert_allclose(found.covariance_, whole.covariance_, rtol=1e-4, atol=1e-7)
    assert (found.n_rounds_, found.burn_in_, found.rank_) == (whole.n_rounds_, whole.burn_in_, whole.rank_)


@pytest.mark.parametrize("kind", ["contexts", "items", "sparse"])
def test_a_scan_gives_what_the_log_in_memory_gives(logs, kind):
    place, options = logs[kind]
    log, scan = read_log(place, **options), scan_log(place, **options)
    close(SuffixImitation(burn_in="rule").fit(scan), SuffixImitation(burn_in="rule").fit(log))
    one, other = burn_in_sweep(scan, [0.0, 0.5, 0.8]), burn_in_sweep(log, [0.0, 0.5, 0.8])
    np.testing.assert_allclose(one.losses, other.losses, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["contexts", "items", "sparse"])
def test_a_cluster_gives_what_the_scan_gives_bit_for_bit(logs, kind, cluster):
    place, options = logs[kind]
    scan = scan_log(place, **options)
    expected = SuffixImitation(burn_in="rule").fit(scan)
    with RayParts(scan, address=cluster, workers=2) as parts:
        found = SuffixImitation(burn_in="rule").fit(parts)
        sweep = burn_in_sweep(parts, [0.0, 0.5])
    np.testing.assert_array_equal(found.theta_, expected.theta_)
    np.testing.assert_array_equal(found.covariance_, expected.covariance_)
    np.testing.assert_array_equal(sweep.thetas, burn_in_sweep(scan, [0.0, 0.5]).thetas)
    close(found, SuffixImitation(burn_in="rule").fit(read_log(place, **options)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["contexts", "items", "sparse"])
def test_the_command(logs, kind, cluster):
    place, options = logs[kind]
    flags = [str(one) for name, value in options.items() for one in flag(name, value)]
    command = [sys.executable, "-m", "onlooker", "fit", place, *flags, "--burn-in", "rule", "--json"]
    ran = subprocess.run(
        [*command, "--engine", "ray", "--address", cluster], check=False, capture_output=True, text=True, timeout=200
    )
    assert ran.returncode == 0, ran.stderr
    whole = SuffixImitation(burn_in="rule").fit(read_log(place, **options))
    estimates = [row["estimate"] for row in json.loads(ran.stdout)["coefficients"]]
    np.testing.assert_allclose(estimates, whole.theta_, atol=1e-6)


def flag(name, value):
    for one in value if isinstance(value, list) else [value]:
        yield from (f"--{name}", one)


def test_text_is_parsed_once_under_a_limit(logs, monkeypatch):
    from onlooker.formats.scan import WholeFiles

    place, _ = logs["sparse"]
    reads, read = [], WholeFiles._read
    monkeypatch.setattr(WholeFiles, "_read", lambda self, file: reads.append(file.path) or read(self, file))
    scan = scan_log(place, memory_limit="16GB")
    opened = len(reads)
    found = SuffixImitation(burn_in="rule").fit(scan)
    assert len(reads) - opened == 4
    np.testing.assert_array_equal(found.theta_, SuffixImitation(burn_in="rule").fit(scan_log(place)).theta_)
