"""The link to the process that speaks to Ray: every wait has an end."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

from onlooker.base.errors import ClusterError, InputError
from onlooker.base.threads import n_threads
from onlooker.clusters.messages import Closed, Event, Open, Opened, Request, make_folder, remove_folder

OPEN_SECONDS = 60.0
"""How long a cluster may take to start or to be joined."""
SILENCE = 300.0
"""Seconds that a worker may give no sign of life: a stopped process, a machine that swaps or was cut off.

A library that computes without giving the interpreter's lock away looks the same.
"""
_KNOCK_SECONDS = 5.0
_PARTING_SECONDS = 15.0
_RECONNECT_SECONDS = 10
"""Ray ends the process that it is in when the cluster has not answered for so long."""


class Link:
    """A cluster: one that is there, at `address`, or one on this machine that lives as long as this object.

    Messages are counted: `sent` and `received` are their bytes so far.
    """

    def __init__(self, address: str | None, workers: int | None) -> None:
        found = importlib.util.find_spec("ray")
        # Any folder of that name would be found, but has no file that it is loaded from.
        if found is None or found.origin is None:
            raise InputError("Ray is not installed: pip install 'onlooker[ray]'")
        if os.name != "posix":
            raise InputError("clusters are supported on Linux and macOS only: use engine local")
        self.address = address
        self.sent = self.received = 0
        if address is not None:
            _knock(address)
        self.folder = make_folder()
        """Files of a cluster of our own; gone when it is."""
        self._connection, theirs = Pipe()
        process = subprocess.Popen(  # noqa: S603 - this interpreter, with a module of ours
            [sys.executable, "-m", "onlooker.clusters.driver", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(own=address is None),
            # Ctrl-C is for this process, which then ends the other.
            start_new_session=True,
        )
        theirs.close()
        self._close = weakref.finalize(self, _part, self._connection, process, self.folder)
        try:
            number = n_threads() if workers is None and address is None else workers
            self.workers = self._opened(Open(address, number, self.folder, SILENCE))
        except BaseException:
            self.close()
            raise

    def send(self, requests: Sequence[Request]) -> None:
        """Send some requests at once."""
        from multiprocessing.reduction import ForkingPickler

        message = ForkingPickler.dumps(requests)
        self.sent += len(message)
        try:
            self._connection.send_bytes(message)
        except OSError:
            raise self._gone() from None

    def receive(self, seconds: float) -> Event | None:
        """The next event; None if there is none for so long."""
        import pickle

        try:
            if not self._connection.poll(max(0.0, seconds)):
                return None
            message = self._connection.recv_bytes()
        except (EOFError, OSError):
            raise self._gone() from None
        self.received += len(message)
        event: Event = pickle.loads(message)
        return event

    def close(self) -> None:
        """Leave the cluster; one of our own ends."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, wanted: Open) -> int:
        self.send([wanted])
        event = self.receive(OPEN_SECONDS)
        where = "on this machine" if self.address is None else f"at {self.address}"
        if event is None:
            raise ClusterError(
                f"no Ray cluster {where} after {OPEN_SECONDS:.0f} s: check that it runs and can be reached"
            )
        if isinstance(event, Closed):
            raise ClusterError(f"no Ray cluster {where}: {event.why[:300]}")
        assert isinstance(event, Opened)
        if event.workers < 1:
            raise ClusterError(f"the Ray cluster {where} has no cores: start workers with `ray start`")
        return event.workers

    def _gone(self) -> ClusterError:
        where = "on this machine" if self.address is None else f"at {self.address}"
        return ClusterError(f"the Ray cluster {where} is gone: check `ray status`, then run this again")


def _part(connection: Connection, process: subprocess.Popen[bytes], folder: str) -> None:
    """End the other process and what it started."""
    connection.close()
    end = time.monotonic() + _PARTING_SECONDS
    # Looked at without being taken: until then, its number is not another's.
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    remove_folder(folder)


def _knock(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would keep trying."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InputError(f"address {address!r}: give it as HOST:PORT, or as auto for the cluster on this machine")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS):
            pass
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise ClusterError(f"no Ray cluster at {address}: {reason}: check the address and that it runs") from error


def _environment(*, own: bool) -> dict[str, str]:
    found = {
        **os.environ,
        # The same modules as here, wherever they are imported from.
        "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_gcs_rpc_server_reconnect_timeout_s": str(_RECONNECT_SECONDS),
    }
    if own:
        import secrets

        # Nobody else on this machine gets at the cluster, and no key is left in the user's home.
        found |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        # Ray replaces a loopback address by that of the network, unless clusters of several machines are off.
        found["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        found |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return found
