"""Load: `python scripts/load.py larger-than-memory | sweep | follow`, each with a verdict and an exit code.

- `larger-than-memory`: a log of four times the limit is fitted, diagnosed and tracked, each in a process of its own;
  every peak must stay below the limit. The log and the work are those of `benchmarks/out_of_core.py`.
- `sweep`: 5,000 small cells through the machinery of `onlooker reproduce`, killed half-way and resumed; every cell
  once, none written again, a table that recomputed cells agree with, and processes that do not grow.
- `follow`: a log that grows for two hours, played in ten minutes, followed by `partial_fit` with its state saved and
  loaded on the way; the process must not grow after its first tenth.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import load_follow
import load_sweep
import out_of_core

from onlooker.base.memory_limit import as_bytes
from onlooker.formats import write_parts

WORK = ("fit", "diagnose", "track")


def larger_than_memory(limit: str, times: float, folder: Path) -> str:
    """Work on a log of so many times the limit; say every peak, or exit at the first above the limit."""
    allowed, path = as_bytes(limit), folder / "log.parquet"
    n_rounds = int(times * allowed) // (4 * out_of_core.ARMS * out_of_core.FEATURES)
    write_parts(out_of_core.draw(n_rounds), path)
    print(
        f"{n_rounds:,} rounds, {path.stat().st_size / 1e6:,.0f} MB on disk; limit {allowed / 1e6:,.0f} MB", flush=True
    )
    for name in WORK:
        found = out_of_core.apart(name, path, limit)
        print(f"{name}: peak {found['peak'] / 1e6:,.0f} MB, {found['seconds']:.0f} s", flush=True)
        if found["peak"] > allowed:
            sys.exit(f"{name} took more memory than the limit")
    return "all peaks are below the limit"


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    large = kinds.add_parser("larger-than-memory")
    large.add_argument("--limit", default="500MB")
    large.add_argument("--times", type=float, default=4.0, help="size of the log, in limits")
    sweep = kinds.add_parser("sweep")
    sweep.add_argument("--cells", type=int, default=5000)
    sweep.add_argument("--workers", type=int, default=1)
    sweep.add_argument("--run", metavar="FOLDER", help=argparse.SUPPRESS)
    follow = kinds.add_parser("follow")
    follow.add_argument("--minutes", type=float, default=10.0)
    follow.add_argument("--rounds", type=int, default=load_follow.ROUNDS)
    given = parser.parse_args()
    if given.kind == "sweep" and given.run:
        load_sweep.run(given.cells, Path(given.run), given.workers)
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        if given.kind == "larger-than-memory":
            said = larger_than_memory(given.limit, given.times, folder)
        elif given.kind == "sweep":
            said = load_sweep.check(given.cells, folder, given.workers)
        else:
            said = load_follow.check(given.rounds, given.minutes, folder)
        print(said)


if __name__ == "__main__":
    main()
