"""Kill `onlooker reproduce --quick` at 200 random moments, start it again each time, compare with an undisturbed run.

`python scripts/kill_reproduce.py --kills 200 --seed 0` took 34 minutes on two busy cores. Once a reproduction is
complete, the next one begins in a new folder, until all kills are spent.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

LOCK = "run.lock"
"""The one file that a run removes when it ends, and that a kill leaves behind."""


@dataclass
class Run:
    """One reproduction, from nothing to its end, however often it is killed on the way."""

    folder: Path
    """Where it keeps its results."""

    options: tuple[str, ...]
    """Of the command."""

    cells: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The finished cells: which file each is, and when it was written."""

    def start(self) -> "subprocess.Popen[bytes]":
        """The command, in a process group of its own."""
        command = [sys.executable, "-m", "onlooker", "reproduce", "--quick", *self.options, "--out", str(self.folder)]
        return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ourselves

    def halves(self) -> set[Path]:
        """Files that are being written, or were when a run was killed."""
        return {path for place in ("", "cells", "figures") for path in (self.folder / place).glob(".*.part")}

    def check(self, whole: dict[str, bytes]) -> None:
        """No cell is lost, written again or there twice, and what can be seen is as an undisturbed run leaves it."""
        now = {path.name: path.stat() for path in self.folder.glob("cells/[!.]*")}
        if lost := self.cells.keys() - now.keys():
            sys.exit(f"finished cells are lost: {sorted(lost)}")
        found = {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in now.items()}
        if again := [name for name, which in self.cells.items() if found[name] != which]:
            sys.exit(f"finished cells were written again: {sorted(again)}")
        self.cells = found
        seen = {name: content for name, content in files_in(self.folder).items() if not Path(name).name.startswith(".")}
        seen.pop(LOCK, None)
        if wrong := [name for name, content in seen.items() if content != whole.get(name)]:
            sys.exit(f"files that an undisturbed run leaves otherwise, or not at all: {sorted(wrong)}")

    def finish(self) -> dict[str, bytes]:
        """Let it run to its end; everything that it leaves."""
        if code := self.start().wait(timeout=1200):
            sys.exit(f"a run that nothing disturbed ended with code {code}")
        return files_in(self.folder)


def files_in(folder: Path) -> dict[str, bytes]:
    """Content by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kill_at_random(run: Run, moments: random.Random) -> bool:
    """Start, and kill: as it starts up, after some more cells, or as it writes a file; False if it was done before."""
    before = run.halves()
    process = run.start()
    kind = moments.randrange(3)
    if kind == 0:
        _wait(process, moments.uniform(0, 4))
    if kind == 1:
        wanted = len(run.cells) + moments.randint(1, 4)
        _wait_for(process, lambda: len(list(run.folder.glob("cells/[!.]*"))) >= wanted)
        _wait(process, moments.uniform(0, 0.3))
    if kind == 2:
        wanted = moments.randint(1, 6)
        written: set[Path] = set()
        _wait_for(process, lambda: bool(written.update(run.halves() - before) or len(written) >= wanted))
    done = process.poll() is not None
    if not done:
        os.killpg(process.pid, signal.SIGKILL)
    if (code := process.wait()) not in {0, -signal.SIGKILL}:
        sys.exit(f"a run ended with code {code}")
    return not done


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    end = time.monotonic() + seconds
    _wait_for(process, lambda: time.monotonic() >= end)


def _wait_for(process: "subprocess.Popen[bytes]", happened: Callable[[], bool]) -> None:
    while process.poll() is None and not happened():
        time.sleep(0.001)


def check(place: Path, kills: int, seed: int, options: tuple[str, ...]) -> str:
    """Kill, start again, compare; say in a line what was seen."""
    moments = random.Random(seed)
    whole = Run(place / "undisturbed", options).finish()
    n_cells = sum(name.startswith("cells") for name in whole)
    runs = [Run(place / "0", options)]
    halves = killed = 0
    while killed < kills:
        if kill_at_random(runs[-1], moments):
            killed += 1
            halves += bool(runs[-1].halves())
            runs[-1].check(whole)
        else:
            compare(files_in(runs[-1].folder), whole)
            runs[-1].check(whole)
            runs.append(Run(place / str(len(runs)), options))
    compare(runs[-1].finish(), whole)
    runs[-1].check(whole)
    return (
        f"{kills} kills (seed {seed}) of {len(runs)} reproductions of {n_cells} cells, {halves} left a half-written "
        f"file: no finished cell lost, written again or doubled; each time all {len(whole)} files byte for byte those "
        "of an undisturbed run"
    )


def compare(left: dict[str, bytes], right: dict[str, bytes]) -> None:
    """Every file must be in both, and the same."""
    differing = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
    if differing:
        sys.exit(f"files that differ: {differing}")


def main() -> None:
    """Parse and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=10, help="of the reproduction, three cells each")
    given = parser.parse_args()
    with TemporaryDirectory() as place:
        print(check(Path(place), given.kills, given.seed, ("--seeds", str(given.seeds))))


if __name__ == "__main__":
    main()
