"""`--engine ray` on the command line."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onlooker.observers import SuffixImitation

from .conftest import wait_for


def onlooker(*arguments):
    command = [sys.executable, "-m", "onlooker", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_fit(cluster, scan):
    path = scan.paths[0].parent / "*.parquet"
    ran = onlooker("fit", path, "--engine", "ray", "--address", cluster, "--burn-in", "rule", "--json")
    out, err = ran.communicate(timeout=100)
    assert ran.returncode == 0, err
    expected = SuffixImitation(burn_in="rule").fit(scan)
    assert [row["estimate"] for row in json.loads(out)["coefficients"]] == expected.theta_.tolist()


@pytest.mark.slow
def test_ctrl_c(cluster, scan):
    ran = onlooker("fit", scan.paths[0].parent / "*.parquet", "--engine", "ray", "--address", cluster)
    children = Path(f"/proc/{ran.pid}/task/{ran.pid}/children")
    wait_for(lambda: children.read_text("utf-8").split(), 60)
    (driver,) = children.read_text("utf-8").split()
    ran.send_signal(signal.SIGINT)
    _, err = ran.communicate(timeout=60)
    assert (ran.returncode, err.splitlines()[-1]) == (130, "onlooker: stopped")
    # Stopped before it held the driver, it leaves it to notice by itself that nobody is there.
    wait_for(lambda: not Path(f"/proc/{driver}").exists(), 30)


@pytest.mark.parametrize("command", [["fit", "log.parquet"], ["reproduce", "--quick"]])
def test_an_address_needs_an_engine(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = onlooker(*command, "--address", "127.0.0.1:6379")
    _, err = ran.communicate(timeout=60)
    assert (ran.returncode, err) == (
        2,
        "onlooker: --address 127.0.0.1:6379: is of a Ray cluster, so add --engine ray\n",
    )
