"""Reading a log against Arrow's bare read of the same file, side by side.

Run it on an idle machine: `python benchmarks/reading.py`. A log of 1,000,000 rows x 20 features; both readers take
turns, and the medians are compared. The long Parquet file is one that Arrow wrote with its own defaults. Arrow gives
columns as they are in the file; `read_log` gives rows, grouped into rounds, with missing values looked for.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from onlooker import BanditLog, read_log, scan_log, write_log

ROWS, FEATURES, ARMS, TURNS = 1_000_000, 20, 10, 9


def make_log() -> BanditLog:
    rng = np.random.default_rng(0)
    rounds = ROWS // ARMS
    names = [f"feature_{j}" for j in range(FEATURES)]
    return BanditLog(
        rng.standard_normal((ROWS, FEATURES)),
        np.arange(0, ROWS + 1, ARMS),
        rng.integers(0, ARMS, rounds),
        feature_names=names,
        round_ids=np.arange(rounds),
    )


def _written(log: BanditLog, path: Path) -> Path:
    write_log(log, path)
    return path


def compare(bare: Callable[[], object], ours: Callable[[], object], turns: int) -> tuple[float, float]:
    """Median seconds of each, taking turns after a first turn that does not count."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns + 1):
        for function, times in zip((bare, ours), taken, strict=True):
            started = time.perf_counter()
            function()
            times.append(time.perf_counter() - started)
    return statistics.median(taken[0][1:]), statistics.median(taken[1][1:])


def main() -> None:
    log = make_log()
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in ("long.parquet", "nested.parquet", "log.csv", "log.jsonl")}
        table = pyarrow.csv.read_csv(_written(log, paths["log.csv"]))
        pyarrow.parquet.write_table(table, paths["long.parquet"])
        for name in ("nested.parquet", "log.jsonl"):
            write_log(log, paths[name])
        cases = {
            "Parquet, long": ("long.parquet", pyarrow.parquet.read_table, TURNS),
            "Parquet, nested": ("nested.parquet", pyarrow.parquet.read_table, TURNS),
            "CSV": ("log.csv", pyarrow.csv.read_csv, TURNS // 2),
            "JSONL": ("log.jsonl", pyarrow.json.read_json, TURNS // 2),
        }
        print(f"{ROWS:,} rows x {FEATURES} features, medians in seconds")
        print(f"{'format':<16} {'MB':>6} {'Arrow':>7} {'read_log':>9} {'ratio':>6} {'scan_log':>9}")
        for label, (name, read, turns) in cases.items():
            path = paths[name]
            again = read_log(path)
            assert np.array_equal(again.features, log.features)
            assert np.array_equal(again.chosen, log.chosen)
            del again
            bare, ours = compare(lambda read=read, path=path: read(path), lambda path=path: read_log(path), turns)
            started = time.perf_counter()
            rounds = sum(part.n_rounds for part in scan_log(path))
            scanned = time.perf_counter() - started
            assert rounds == log.n_rounds
            size = path.stat().st_size / 1e6
            print(f"{label:<16} {size:>6.0f} {bare:>7.3f} {ours:>9.3f} {ours / bare:>6.2f} {scanned:>9.3f}", flush=True)


if __name__ == "__main__":
    main()
