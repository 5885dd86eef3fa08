"""Fit on a Ray cluster of two workers, kill one at a random moment, and compare with the fit of one machine.

`python scripts/kill_ray_workers.py --kills 20 --driver-kills 3 --seed 0` takes some minutes. Every third run kills a
second time, while what was lost is loaded again. Driver kills end the process of the fit itself, which is run anew.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from onlooker import BanditLog, LogScan, SuffixImitation, scan_log, write_log
from onlooker.clusters import RayParts

DEADLINE = 120.0


def process(part: BanditLog, first: int) -> int:  # noqa: ARG001  the shape of a task
    """Which process keeps a part."""
    return os.getpid()


def write_days(folder: Path) -> LogScan:
    """A log of 60,000 rounds in 12 files, and the scan of it."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=10)
    for day in range(12):
        features = rng.standard_normal((5000, 20, 10), dtype=np.float32)
        chosen = (features @ theta + rng.gumbel(size=(5000, 20))).argmax(axis=1)
        write_log(BanditLog.from_dense(features, chosen), folder / f"day{day:02d}.parquet")
    return scan_of(folder)


def scan_of(folder: Path) -> LogScan:
    """Parts of a file each, of which little is sampled: a log no larger than its sample is not fitted by workers."""
    LogScan.sample_bytes = 1 << 20
    return scan_log(f"{folder}/*.parquet")


def answer(parts: LogScan | RayParts) -> bytes:
    """Theta and its covariance to the last bit."""
    observer = SuffixImitation(burn_in=10_000).fit(parts)
    return observer.theta_.tobytes() + observer.covariance_.tobytes()


class Killer(threading.Thread):
    """Kills workers at given moments."""

    def __init__(self, pids: list[int], moments: list[float]) -> None:
        super().__init__()
        self.pids, self.moments, self.done = pids, moments, threading.Event()
        self.hits = 0

    def run(self) -> None:
        """Wait for each moment, unless the fit is over before."""
        began = time.monotonic()
        for pid, moment in zip(self.pids, self.moments, strict=False):
            if self.done.wait(max(0.0, began + moment - time.monotonic())):
                return
            os.kill(pid, signal.SIGKILL)
            self.hits += 1


def kill_workers(scan: LogScan, expected: bytes, kills: int, moments: random.Random) -> list[str]:
    """Fits with a kill in each; gives what was wrong."""
    # By its name, so that workers can import it.
    from kill_ray_workers import process as of_worker

    wrong = []
    print(f"{'run':>3}  {'kills':>5}  {'after':>7}  {'seconds':>7}  result")
    with RayParts(scan, workers=2, deadline=DEADLINE) as parts:
        # The first one may compile.
        if answer(parts) != expected:
            wrong.append("without a kill")
        began = time.monotonic()
        answer(parts)
        usual = time.monotonic() - began
        print(f"{'-':>3}  {0:>5}  {'':>7}  {usual:>6.2f}s  undisturbed")
        number = 0
        while number < kills:
            pids = sorted(set(parts.run(of_worker)))
            moments.shuffle(pids)
            after = moments.uniform(0.0, usual)
            killer = Killer(pids, [after, after + moments.uniform(0, 3)] if number % 3 == 2 else [after])
            began = time.monotonic()
            killer.start()
            same = answer(parts) == expected
            took = time.monotonic() - began
            killer.done.set()
            killer.join()
            # A fit that was over before its moment came does not count.
            if killer.hits:
                number += 1
                verdict = "identical" if same else "DIFFERENT"
                print(f"{number:>3}  {killer.hits:>5}  {after:>6.2f}s  {took:>6.2f}s  {verdict}", flush=True)
            if not same:
                wrong.append(f"run {number}")
    return wrong


def kill_drivers(folder: Path, expected: bytes, kills: int, moments: random.Random) -> list[str]:
    """Kill the process of a fit, and run it anew; gives what was wrong."""
    wrong = []
    command = [sys.executable, __file__, "--fit", str(folder)]
    for number in range(kills):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as driver:  # noqa: S603 - itself
            after = moments.uniform(2, 30)
            time.sleep(after)
            over = driver.poll() is not None
            driver.kill()
        again = subprocess.run(command, stdout=subprocess.PIPE, timeout=300, check=True)  # noqa: S603 - itself
        same = again.stdout == expected
        state = "was over" if over else "killed"
        print(f"driver {state} after {after:.1f}s, run anew: {'identical' if same else 'DIFFERENT'}", flush=True)
        if not same:
            wrong.append(f"driver {number}")
    return wrong


def main() -> None:
    """Check, or be the fit whose process is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--driver-kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        with RayParts(scan_of(Path(options.fit)), workers=2, deadline=DEADLINE) as parts:
            sys.stdout.buffer.write(answer(parts))
        return
    moments = random.Random(options.seed)
    with TemporaryDirectory() as place:
        scan = write_days(Path(place))
        expected = answer(scan)
        wrong = kill_workers(scan, expected, options.kills, moments)
        wrong += kill_drivers(Path(place), expected, options.driver_kills, moments)
    if wrong:
        sys.exit(f"not the result of one machine: {', '.join(wrong)}")
    print(
        f"{options.kills} runs with kills, {options.driver_kills} drivers killed (seed {options.seed}): all identical"
    )


if __name__ == "__main__":
    main()
