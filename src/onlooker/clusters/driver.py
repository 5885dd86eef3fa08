"""The process that speaks to Ray, apart from the user's: Ray may hang, print, or end the process that it is in.

It joins or starts a cluster, starts workers, and passes calls and answers on. It ends when the user's process does.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from onlooker.clusters.actor import Actor
from onlooker.clusters.messages import (
    Answered,
    Call,
    Closed,
    Event,
    Hire,
    Hired,
    Lost,
    Open,
    Opened,
    Request,
    one_line,
    remove_folder,
)

_STORE_BYTES = 256 << 20
"""For results on their way, on a cluster of our own. Logs are never kept there."""
_PARTING_SECONDS = 10.0
_PULSE = "pulse"
"""Signs of life have a thread of their own in a worker."""


class Tick:
    """Some time has passed."""


class Driver:
    """The workers of one cluster."""

    def __init__(self) -> None:
        self._actors: dict[tuple[int, int], Any] = {}
        self._asked: dict[tuple[int, int], tuple[float, Any]] = {}
        self.folder = ""
        """For the files of a cluster on this machine."""
        self.events: SimpleQueue[Event | Request | Tick | None] = SimpleQueue()
        """What happened, here or there, one after the other; None at the end."""

    def open(self, wanted: Open) -> Event:
        """Join a cluster, or start one."""
        import ray

        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if wanted.address is not None:
                ray.init(wanted.address, **quiet)
            else:
                ray.init(
                    "local",
                    num_cpus=wanted.workers,
                    num_gpus=0,
                    include_dashboard=False,
                    object_store_memory=_STORE_BYTES,
                    # Ray lets everyone into its own folder, but not into that one.
                    _temp_dir=str(Path(wanted.folder) / "ray"),
                    # All of its ports are on this machine's loopback address, with what `link` sets.
                    _node_ip_address="127.0.0.1",
                    **quiet,
                )
            return Opened(wanted.workers or int(ray.cluster_resources().get("CPU", 0)))
        except Exception as error:  # noqa: BLE001 - whatever it was, there is no cluster
            return Closed(one_line(error))

    def hire(self, wanted: Hire) -> None:
        """Start a worker; one that dies is not started again unless asked for."""
        import ray

        worker = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, concurrency_groups={_PULSE: 1})(Actor)
        actor = worker.remote(wanted.maker, str(Path.cwd()))
        # Whoever was in its place before is gone.
        before = wanted.slot, wanted.life - 1
        self._actors.pop(before, None)
        self._asked.pop(before, None)
        self._actors[wanted.slot, wanted.life] = actor
        place = wanted.slot, wanted.life
        self._when_done(actor.hello.remote(), place, lambda version: Hired(*place, version))

    def call(self, wanted: Call) -> None:
        """Send arguments to a worker."""
        place = wanted.slot, wanted.life
        answer = self._actors[place].call.remote(wanted.payload)
        self._when_done(answer, place, lambda payload: Answered(*place, wanted.number, payload))

    def ask(self, place: tuple[int, int]) -> None:
        """Ask a worker that has started for a sign of life."""
        if (actor := self._actors.get(place)) is not None:
            self._asked[place] = time.monotonic(), actor.pulse.options(concurrency_group=_PULSE).remote()

    def check(self, silence: float) -> None:
        """End the workers that have been silent for so many seconds, and ask the others again."""
        import ray

        for place, (since, answer) in list(self._asked.items()):
            if ray.wait([answer], timeout=0)[0]:
                try:
                    ray.get(answer)
                except Exception as error:  # noqa: BLE001 - whatever it was, the worker is gone
                    self._lose(place, one_line(error))
                else:
                    self.ask(place)
            elif time.monotonic() - since > silence:
                ray.kill(self._actors[place])
                self._lose(place, f"no sign of life for {silence:g} s")

    def _lose(self, place: tuple[int, int], why: str) -> None:
        del self._asked[place]
        self.events.put(Lost(*place, why))

    def _when_done(self, reference: Any, place: tuple[int, int], event: Any) -> None:
        def note(future: Any) -> None:
            error = future.exception()
            self.events.put(event(future.result()) if error is None else Lost(*place, one_line(error)))

        reference.future().add_done_callback(note)


def serve(connection: Connection) -> None:
    """Handle requests until there is no one left to send any."""
    driver, silence = Driver(), math.inf
    threading.Thread(target=_listen, args=(connection, driver), daemon=True).start()
    while (event := driver.events.get()) is not None:
        match event:
            case Open():
                driver.folder, silence = event.folder, event.silence
                driver.events.put(driver.open(event))
                threading.Thread(target=_tick, args=(driver, silence / 6), daemon=True).start()
            case Tick():
                driver.check(silence)
            case Hire():
                driver.hire(event)
            case Call():
                driver.call(event)
            case _:
                if isinstance(event, Hired):
                    driver.ask((event.slot, event.life))
                # Nobody may be there to listen: that is noticed where requests are read.
                with suppress(OSError):
                    connection.send(event)
    import ray

    ray.shutdown()
    remove_folder(driver.folder)
    os._exit(0)


def _tick(driver: Driver, seconds: float) -> None:
    while True:
        time.sleep(seconds)
        driver.events.put(Tick())


def _listen(connection: Connection, driver: Driver) -> None:
    while True:
        try:
            requests = connection.recv()
        except (EOFError, OSError):
            break
        for request in requests:
            driver.events.put(request)
    driver.events.put(None)
    # Ray may be starting, or hang where its cluster is gone.
    time.sleep(_PARTING_SECONDS)
    remove_folder(driver.folder)
    # What was started is in one group with us.
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
