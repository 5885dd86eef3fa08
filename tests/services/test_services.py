"""Logs in a real PostgreSQL and behind an S3 endpoint: the same answer, no secrets, and clear ends."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow.parquet as pq
import pytest

from onlooker import InputError, SuffixImitation, read_log, read_logs, scan_log
from place_logs import log_table
from services.conftest import SECRET, fill_postgresql, fill_s3, running, start_postgresql, start_s3

QUERY = "SELECT * FROM log ORDER BY round, arm"


@pytest.fixture
def places(postgresql, s3, monkeypatch):
    """Addresses and options by name; credentials are in the environment."""
    for name, value in {**postgresql.environment, **s3.environment}.items():
        monkeypatch.setenv(name, value)
    base = f"postgresql://bob@{postgresql.address}"
    return {
        "query": (base, {"sql": QUERY}),
        "table": (base, {"sql": "public.log"}),
        "password in the address": (base.replace("bob@", f"bob:{quote(SECRET, safe='')}@"), {"sql": QUERY}),
        "object": ("s3://bucket/log.parquet", {}),
        "folder": ("s3://bucket/hive", {}),
        "pattern": ("s3://bucket/hive/**/*.parquet", {}),
        "list": ([f"s3://bucket/hive/year=2024/month={month}/part 0.parquet" for month in ("09", "10", "11")], {}),
    }


KINDS = ["query", "table", "password in the address", "object", "folder", "pattern", "list"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("opened", [read_log, scan_log])
def test_the_same_log_gives_the_same_theta(places, tmp_path, kind, opened):
    pq.write_table(log_table(), tmp_path / "log.parquet")
    source, options = places[kind]
    columns = {"features": ["price", "size", "colour"], "arm": "arm"}
    expected = SuffixImitation(burn_in=0).fit(opened(tmp_path / "log.parquet", **columns)).theta_
    assert np.array_equal(SuffixImitation(burn_in=0).fit(opened(source, **columns, **options)).theta_, expected)


def test_partitions_in_a_store_are_columns(places):
    (log,) = read_logs(places["folder"][0], by="year", features=["price"]).values()
    assert log.n_rounds == 120


def test_kinds_of_postgresql(postgresql, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", SECRET)
    query = (
        "SELECT round, chosen, price::numeric(20, 6) AS price, size::smallint AS size, colour::varchar(9) AS colour, "
        "(size > 4) AS large, timestamp '2024-01-01' + round * interval '1 day' AS at FROM log ORDER BY round"
    )
    log = read_log(f"postgresql://bob@{postgresql.address}", sql=query, order_by="at")
    assert log.feature_names[:2] == ("price", "size")
    assert np.allclose(log.dense[:, 0], np.round(np.array(log_table()["price"]), 6), rtol=0, atol=1e-12)
    assert log.times is not None


@pytest.mark.parametrize(
    ("address", "sql", "said"),
    [
        ("bob@HOST", "SELECT nothing FROM log", "does not exist"),
        ("bob@HOST", "SELECT * FROM log WHERE round < 0", "the query gives no rows"),
        ("bob@HOST", "DELETE FROM log", "read-only"),
        ("bob:wr0ng@HOST", QUERY, "password authentication failed"),
        ("bob@127.0.0.1:1/postgres", QUERY, "refused"),
    ],
)
@pytest.mark.usefixtures("places")
def test_what_a_database_refuses(postgresql, address, sql, said):
    with pytest.raises(InputError, match=said) as caught:
        read_log(f"postgresql://{address.replace('HOST', postgresql.address)}", sql=sql)
    assert "\n" not in str(caught.value)
    assert not {SECRET, quote(SECRET, safe=""), "wr0ng"} & {*str(caught.value).split()}
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://bucket/none.parquet", "there is no such file or folder"),
        ("s3://nobucket/log.parquet", "there is no such file or folder|NO_SUCH_BUCKET"),
        ("s3://bucket/none/*.parquet", "no file matches"),
        ("s3://bucket/x.csv?endpoint_override=127.0.0.1:1&scheme=http", r"^s3://bucket/x\.csv\?\*\*\*: cannot be read"),
    ],
)
@pytest.mark.usefixtures("places")
def test_what_a_store_refuses(address, said):
    with pytest.raises(InputError, match=said):
        read_log(address)


def run(arguments, environment, folder):
    """Start a command whose copies go to a folder of its own."""
    (folder / "tmp").mkdir(exist_ok=True)
    settings = {**os.environ, **environment, "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(
        [sys.executable, "-m", "onlooker", *map(str, arguments)],
        cwd=folder,
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_copies(folder, count, process):
    """Until so many bytes have been copied."""
    for _ in range(3000):
        if sum(path.stat().st_size for path in (folder / "tmp").rglob("*") if path.is_file()) > count:
            return
        if process.poll() is not None:
            pytest.fail(f"it ended before anything was copied: {process.communicate()}")
        time.sleep(0.01)
    process.kill()
    pytest.fail(f"nothing was copied: {process.communicate()}")


def check_clear_end(process, folder):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2, (out, err)
    assert out == ""
    assert err.startswith("onlooker: ")
    assert err.count("\n") == 1
    assert SECRET not in err
    assert [path.name for path in folder.iterdir()] == ["tmp"]
    assert not [*(folder / "tmp").iterdir()]


@pytest.mark.parametrize("command", [["fit"], ["fit", "--memory-limit", "800MB"], ["convert"]])
def test_postgresql_killed_in_the_middle(tmp_path, command):
    with running(start_postgresql) as server:
        fill_postgresql(server)
        pause = "(SELECT pg_sleep(0.002 + 0 * s)) p"
        slow = f"SELECT q.* FROM generate_series(1, 9000) s, LATERAL (SELECT l.* FROM {pause}, log l OFFSET 0) q"  # noqa: S608
        out = ["out.csv"] if command == ["convert"] else ["--out", "out.json"]
        address = f"postgresql://bob@{server.address}"
        process = run([*command, address, *out, "--sql", slow], server.environment, tmp_path)
        wait_for_copies(tmp_path, 100_000, process)
        server.kill()
        check_clear_end(process, tmp_path)


def test_a_store_killed_in_the_middle(tmp_path):
    with running(start_s3) as server:
        store = fill_s3(server)
        for number in range(500):
            store.copy_file("bucket/log.parquet", f"bucket/many/{number}.parquet")
        process = run(["fit", "s3://bucket/many", "--out", "out.json"], server.environment, tmp_path)
        wait_for_copies(tmp_path, 100_000, process)
        server.kill()
        check_clear_end(process, tmp_path)


@pytest.mark.parametrize("kind", ["password in the address", "object"])
def test_nothing_secret_is_printed_or_written(places, tmp_path, kind):
    (source, options), planted = places[kind], {SECRET, quote(SECRET, safe=""), SECRET.split("/")[0]}
    if kind == "object":
        endpoint = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
        keys = f"bob:{quote(SECRET, safe='')}@"
        source = f"{source.replace('s3://', 's3://' + keys)}?scheme=http&endpoint_override={quote(endpoint, safe='')}"
    given = [source, *(["--sql", options["sql"]] if options else [])]
    for arguments in (
        ["fit", *given, "--out", "policy.json", "--json"],
        ["track", *given, "--state", "state.json", "--out", "tracked.json"],
        ["track", *given, "--state", "state.json", "--json"],
        ["report", *given, "--out", "report.html"],
        ["report", *given, "--out", "by.html", "--by", "shop", "--json"],
        ["compare", *given, "--out", "table.csv", "--observer", "naive"],
        ["convert", *given, "log.parquet"],
        ["fit", *given, "--round", "nothing"],
        ["fit", *given, "--memory-limit", "1kB"],
    ):
        process = run(arguments, {"PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": "always"}, tmp_path)
        out, err = process.communicate(timeout=120)
        assert process.returncode == (2 if "nothing" in arguments or "1kB" in arguments else 0), (arguments, err)
        assert not any(word in out + err for word in planted), arguments
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"report.html", "state.json", "policy.json", "log.parquet"} <= {path.name for path in written}
    for path in written:
        content = path.read_bytes()
        assert not any(word.encode() in content for word in planted), path.name


def test_a_scan_of_a_database_keeps_memory_flat(postgresql, tmp_path):
    """Ten times the rows take no more memory."""
    peaks = []
    for copies in (200, 2000):
        columns = "l.round + 120 * s AS round, l.chosen, l.price, l.size"
        query = f"SELECT {columns} FROM generate_series(1, {copies}) s, log l"  # noqa: S608  our own
        script = (
            "import resource, sys; from onlooker import scan_log; "
            "scan = scan_log(sys.argv[1], sql=sys.argv[2]); rounds = sum(part.n_rounds for part in scan); "
            "print(rounds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        address = f"postgresql://bob@{postgresql.address}"
        ran = subprocess.run(
            [sys.executable, "-c", script, address, query],
            env={**os.environ, **postgresql.environment, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        rounds, peak = json.loads(f"[{ran.stdout.strip().replace(' ', ',')}]")
        assert rounds == 120 * copies
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 60_000
    assert not [*Path(tmp_path).iterdir()]
