"""A Ray cluster of four workers for all tests of a session, and logs to spread over it."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from onlooker.formats import scan_log, write_log
from onlooker.logs.log import BanditLog


@pytest.fixture(scope="session")
def cluster():
    """Address of a cluster that onlooker did not start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    options = {
        "port": port,
        "num-cpus": 4,
        "include-dashboard": "false",
        "object-store-memory": 100 << 20,
        "node-ip-address": "127.0.0.1",
    }
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder, pytest.MonkeyPatch.context() as patch:
        for name, value in token.items():
            patch.setenv(name, value)
        command = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--disable-usage-stats"]
        process = subprocess.Popen(
            [*command, *(f"--{name}={value}" for name, value in options.items()), f"--temp-dir={folder}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            wait_for(lambda: answers(port), 60)
            yield f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            wait_for(lambda: not processes_with(folder), 30)


@pytest.fixture(scope="session")
def log():
    rng = np.random.default_rng(7)
    features = rng.normal(size=(3000, 8, 5)).astype(np.float32)
    scores = features @ np.array([2.0, -1.0, 0.5, 0.0, 1.0]) + rng.gumbel(size=(3000, 8))
    return BanditLog.from_dense(features, scores.argmax(axis=1))


@pytest.fixture(scope="session")
def scan(log, tmp_path_factory):
    """The log in eight files of one row group each, which are eight parts."""
    folder = tmp_path_factory.mktemp("scan")
    for number in range(8):
        write_log(log[number * 375 : (number + 1) * 375], folder / f"day{number}.parquet")
    return scan_log(f"{folder}/*.parquet")


def answers(port):
    with socket.socket() as knock:
        return knock.connect_ex(("127.0.0.1", port)) == 0


def processes_with(text):
    """Processes whose command line names something."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
