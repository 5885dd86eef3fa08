"""A log of four times the memory limit: peak memory, and each pass against a bare scan of the same file by pyarrow.

Run it on an idle machine: `python benchmarks/out_of_core.py`. Two logs are written to a temporary folder: of a LinUCB
learner, which hardly explores in the end, and of a softmax policy, whose preference is weaker for a tenth of the
rounds and which leaves every arm a chance to the last. Every line is a process of its own that is given the limit; its
peak is what the system says of it (VmHWM). The bare scan asks pyarrow for the same columns in small batches and does
nothing with them; one is made before and one after each line. Results go to `docs/speed/out_of_core.md`.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from onlooker import (
    BanditLog,
    Environment,
    LinUCB,
    SuffixImitation,
    TrackingObserver,
    burn_in_sweep,
    diagnose,
    scan_log,
    simulate,
)
from onlooker.base.memory_limit import as_bytes
from onlooker.formats import LogScan, write_parts

ARMS, FEATURES = 50, 20
PART = 2_000
TIMES = 4
EARLY = 0.3
"""Strength of the preference in the first tenth of the log."""
TABLE = Path(__file__).parents[1] / "docs/speed/out_of_core.md"


def rounds_for(limit: int) -> int:
    """Rounds whose features take four times the limit."""
    return TIMES * limit // (4 * ARMS * FEATURES)


def play(n_rounds: int) -> Iterator[BanditLog]:
    """The learner's log, a part at a time."""
    log = simulate(Environment(FEATURES, ARMS), LinUCB(), n_rounds).log
    for first in range(0, n_rounds, PART):
        yield log[first : first + PART]


def draw(n_rounds: int) -> Iterator[BanditLog]:
    """The softmax policy's log, a part at a time."""
    theta = np.random.default_rng(1).standard_normal(FEATURES).astype(np.float32)
    for first in range(0, n_rounds, PART):
        rng = np.random.default_rng([2, first])
        n = min(PART, n_rounds - first)
        X = rng.standard_normal((n, ARMS, FEATURES), dtype=np.float32)
        scores = X @ theta * (1.0 if first >= n_rounds // 10 else EARLY)
        yield BanditLog.from_dense(X, (scores + rng.gumbel(size=(n, ARMS))).argmax(axis=1))


LOGS = {"a LinUCB learner": play, "a softmax policy": draw}


def work(name: str, path: str, limit: str) -> dict[str, Any]:
    """Do one thing under the limit; say how long every pass took, and how much memory there was at most."""
    passes: list[tuple[int, float]] = []
    original = LogScan.run

    def timed(self: LogScan, task: Any, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        started = time.perf_counter()
        yield from original(self, task, start, stop)
        if stop is None:
            passes.append((start, time.perf_counter() - started))

    LogScan.run = timed  # type: ignore[method-assign]
    started = time.perf_counter()
    if name == "bare":
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches(batch_size=PART, columns=["chosen", "arms"]):
                pass
    else:
        scan = scan_log(path, memory_limit=limit)
        found = {
            "fit": lambda: SuffixImitation(burn_in="rule").fit(scan),
            "fit, auto": lambda: SuffixImitation(burn_in="auto").fit(scan),
            "burn_in_sweep": lambda: burn_in_sweep(scan),
            "diagnose": lambda: diagnose(scan),
            "track": lambda: TrackingObserver().fit(scan),
        }
        found[name]()
    seconds = time.perf_counter() - started
    status = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert status is not None
    return {"seconds": seconds, "passes": passes, "peak": 1024 * int(status[1])}


def apart(name: str, path: Path, limit: str) -> dict[str, Any]:
    """`work` in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--work", name, "--path", str(path), "--limit", limit]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  this very file
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def measure(limit: str, log: str, names: list[str], folder: Path) -> list[str]:
    """The lines of a log's table."""
    path, n_rounds = folder / "log.parquet", rounds_for(as_bytes(limit))
    write_parts(LOGS[log](n_rounds), path)
    size = path.stat().st_size
    print(log, flush=True)
    lines = [
        f"## The log of {log}",
        "",
        f"{n_rounds:,} rounds of {ARMS} arms, {FEATURES} features, {size / 1e9:.2f} GB; memory limit {limit}.",
        "",
        "| | peak memory, MB | passes | seconds a pass | bare scan, seconds | rate, bare scan 1 | seconds in all |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name in names:
        before, found, after = (apart(one, path, limit) for one in ("bare", name, "bare"))
        bare = statistics.mean((before["seconds"], after["seconds"]))
        # A pass over a suffix is counted as the part of the file that it reads.
        whole = statistics.median(seconds / (1 - start / n_rounds) for start, seconds in found["passes"])
        lines.append(
            f"| {name} | {found['peak'] / 1e6:.0f} | {len(found['passes'])} | {whole:.1f} | {bare:.1f} | "
            f"{bare / whole:.2f} | {found['seconds']:.0f} |"
        )
        print(lines[-1], flush=True)
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", default="500MB")
    parser.add_argument("--only", nargs="*", default=["fit", "fit, auto", "burn_in_sweep", "diagnose", "track"])
    parser.add_argument("--out", type=Path, default=TABLE)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        print(json.dumps(work(given.work, given.path, given.limit)))
        return
    with TemporaryDirectory() as folder:
        lines = [line for log in LOGS for line in measure(given.limit, log, given.only, Path(folder))]
    command = "Written by `python benchmarks/out_of_core.py`; seconds a pass are medians, scaled to the whole file."
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text("\n".join(["# A log of four times the memory limit", "", command, "", *lines]))


if __name__ == "__main__":
    main()
