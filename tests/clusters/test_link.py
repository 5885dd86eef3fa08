"""Clusters that are not there, or no longer: an error in bounded time, and nothing left behind."""

import importlib.util
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from cluster_tasks import process, rounds
from onlooker.base.errors import ClusterError, InputError
from onlooker.clusters import RayParts, link
from onlooker.clusters.link import Link

from .conftest import processes_with, wait_for


def test_ray_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(InputError, match=r"Ray is not installed: pip install 'onlooker\[ray\]'"):
        Link(None, 1)


@pytest.mark.parametrize("address", ["", "cluster", "host:", ":6379", "host:port", "host:70000"])
def test_addresses_that_are_none(address):
    with pytest.raises(InputError, match=r"give it as HOST:PORT"):
        Link(address, None)


def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no Ray cluster at {address}: .*: check the address"):
            Link(address, None)


@pytest.mark.slow
def test_someone_listens_who_is_no_cluster(monkeypatch):
    monkeypatch.setattr(link, "OPEN_SECONDS", 4.0)
    monkeypatch.setattr(link, "_PARTING_SECONDS", 1.0)
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no Ray cluster at {address} after 4 s"):
            Link(address, None)
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_a_cluster_of_our_own_that_is_killed(scan):
    with RayParts(scan, workers=1) as parts:
        folder = Path(parts.link.folder)
        assert folder.exists()
        assert list(parts.run(rounds)) == list(scan.run(rounds))
        # A worker answers on its own as long as it lives.
        for pid in {*processes_with(folder.name), *parts.run(process)}:
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(ClusterError, match=r"the Ray cluster on this machine is gone|none of 1 workers is left"):
            list(parts.run(rounds))
        assert time.monotonic() - began < 60
    assert not folder.exists()
    wait_for(lambda: not processes_with(folder.name), 20)
