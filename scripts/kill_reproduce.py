"""Kill `onlooker reproduce --quick` at 30 random moments, resume it, compare every file with an undisturbed run.

`python scripts/kill_reproduce.py --kills 30 --seed 0` takes a few minutes.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

SEEDS = 10
"""Enough cells for thirty interruptions."""


def start(folder: Path) -> "subprocess.Popen[bytes]":
    """The command, in a process group of its own."""
    arguments = ["reproduce", "--quick", "--seeds", str(SEEDS), "--out", str(folder)]
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-m", "onlooker", *arguments], start_new_session=True, stdout=subprocess.DEVNULL
    )


def files_in(folder: Path) -> dict[str, bytes]:
    """Content by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(place: Path, kills: int, seed: int) -> str:
    """Kill, resume, compare; say in a line what was seen."""
    moments = random.Random(seed)
    disturbed, undisturbed = place / "disturbed", place / "undisturbed"
    touched: dict[str, int] = {}
    killed = 0
    while killed < kills:
        process = start(disturbed)
        time.sleep(moments.uniform(0.2, 6.0))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.wait()
        for cell in disturbed.glob("cells/*.json"):
            when = cell.stat().st_mtime_ns
            if touched.setdefault(cell.name, when) != when:
                sys.exit(f"{cell.name} was finished and written again")
        if len(list(disturbed.glob("cells/*.json"))) == 3 * SEEDS and killed < kills:
            # All cells are there: from here on the kills hit tables, claims, figures and the page.
            (disturbed / "index.html").unlink(missing_ok=True)
    for folder in (disturbed, undisturbed):
        if code := start(folder).wait(timeout=600):
            sys.exit(f"a run that nothing disturbed ended with code {code}")
    left, right = files_in(disturbed), files_in(undisturbed)
    differing = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
    if differing:
        sys.exit(f"files that differ: {differing}")
    return f"{kills} kills (seed {seed}): no finished cell written again, all {len(right)} files byte for byte the same"


def main() -> None:
    """Parse and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with TemporaryDirectory() as place:
        print(check(Path(place), options.kills, options.seed))


if __name__ == "__main__":
    main()
