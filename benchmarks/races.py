"""This source beside that of another commit: `python benchmarks/races.py --against FOLDER` prints how long both take.

    git worktree add ../older v0.1.0
    python benchmarks/races.py --against ../older/src

Two processes at a time, one with each source, take turns at the same work on the same log. A time is processor
seconds with one thread, the median over all turns; a ratio is the median of those of every pair of processes, since
where a process has its memory matters too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIZES = {"small": (50, 20), "large": (200, 50)}
"""Arms and features."""
RACES = [
    *("fit naive small", "fit rule small", "fit naive large", "fit rule large", "sweep small", "sweep large"),
    *("simulate small", "simulate large", "track small", "track large", "csv small", "parquet small", "parquet large"),
]
WORKER = "--worker"
ONE_THREAD = dict.fromkeys(("ONLOOKER_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def make_logs(folder: Path, n_rounds: int, sizes: set[str]) -> None:
    """Write the logs that both are given."""
    from onlooker import Environment, LinUCB, simulate, write_log

    for name in sizes:
        arms, features = SIZES[name]
        log = simulate(Environment(features, arms), LinUCB(), n_rounds=n_rounds, seed=1).log
        np.savez(folder / f"{name}.npz", X=log.features.reshape(n_rounds, arms, features), chosen=log.chosen)
        for ending in ("csv", "parquet") if name == "small" else ("parquet",):
            write_log(log, folder / f"{name}.{ending}")


def work(race: str, folder: Path) -> Callable[[], Any]:
    """What a race repeats."""
    import onlooker as ol

    kind, *options, size = race.split()
    arms, features = SIZES[size]
    if kind in ("csv", "parquet"):
        return lambda: ol.read_log(folder / f"{size}.{kind}")
    arrays = np.load(folder / f"{size}.npz")
    log = ol.BanditLog.from_dense(arrays["X"], arrays["chosen"])
    if kind == "fit":
        return lambda: ol.SuffixImitation(burn_in=options[0]).fit(log)
    if kind == "sweep":
        return lambda: ol.burn_in_sweep(log)
    if kind == "track":
        return lambda: ol.TrackingObserver(exploration=ol.UCB(1.0)).fit(log)
    environment = ol.Environment(features, arms)
    return lambda: ol.simulate(environment, ol.LinUCB(), n_rounds=log.n_rounds, seed=2)


def worker(race: str, folder: Path) -> None:
    """Run the race as often as every line of the standard input says, and print the processor seconds of each run."""
    warnings.simplefilter("ignore")
    run = work(race, folder)
    run()
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            began = time.process_time()
            run()
            times.append(time.process_time() - began)
        print(json.dumps(times), flush=True)


def pair(race: str, folder: Path, sources: list[Path], turns: int, repeats: int) -> np.ndarray:
    """Times of two processes that take turns, shape (2, turns * repeats)."""
    command = [sys.executable, __file__, WORKER, race, str(folder)]
    found: list[list[float]] = [[], []]
    started = [
        subprocess.Popen(  # noqa: S603  this very file
            command,
            env=os.environ | ONE_THREAD | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for source in sources
    ]
    for turn in range(turns):
        for side in (0, 1) if turn % 2 else (1, 0):
            process = started[side]
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{repeats}\n")
            process.stdin.flush()
            found[side] += json.loads(process.stdout.readline())
    for process in started:
        process.communicate()
    return np.array(found)


def main() -> None:
    """Race by race."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, required=True, help="folder of the other source, that holds onlooker/")
    parser.add_argument("--race", action="append", choices=RACES, help="one of the races; all by default")
    parser.add_argument("--rounds", type=int, default=10_000, help="of every log")
    parser.add_argument("--pairs", type=int, default=3, help="of processes")
    parser.add_argument("--turns", type=int, default=9, help="of every pair")
    options = parser.parse_args()
    sources = [options.against.resolve(), Path(__file__).resolve().parents[1] / "src"]
    print("race               other ms   this ms   ratio  of least")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        races = options.race or RACES
        make_logs(folder, options.rounds, {race.split()[-1] for race in races})
        for race in races:
            repeats = 5 if race.endswith("small") else 1
            pairs = [pair(race, folder, sources, options.turns, repeats) for _ in range(options.pairs)]
            other, this = 1e3 * np.median(pairs, axis=(0, 2))
            ratio = np.median([np.median(new) / np.median(old) for old, new in pairs])
            least = np.median([new.min() / old.min() for old, new in pairs])
            print(f"{race:16s} {other:10.1f} {this:9.1f} {ratio:7.3f} {least:9.3f}", flush=True)


if __name__ == "__main__":
    if WORKER in sys.argv:
        worker(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
