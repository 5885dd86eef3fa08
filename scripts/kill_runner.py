"""Kill an experiment at 30 random moments, resume it, and compare it with one that nothing disturbed.

`python scripts/kill_runner.py --kills 30 --seed 0` takes about a minute.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from onlooker.experiments.runner import Task, run_tasks

TASKS = 40
LOG = "KILL_RUNNER_LOG"


def cell(number: int) -> dict[str, list[dict[str, float]]]:
    """Work of 0.1 to 0.3 seconds, and a result large enough to be killed while it is written."""
    with open(os.environ[LOG], "a", encoding="utf-8") as log:
        log.write(f"{key(number)}\n")
    values = random.Random(number)
    time.sleep(values.uniform(0.1, 0.3))
    return {"rows": [{"index": index, "value": values.gauss(0, 1)} for index in range(20_000)]}


def key(number: int) -> str:
    """Name of a task."""
    return f"cell-{number:02d}"


def run(folder: Path, log: Path) -> "subprocess.Popen[bytes]":
    """Start the experiment, or resume it, in a process group of its own."""
    command = [sys.executable, __file__, "--run", str(folder)]
    return subprocess.Popen(command, start_new_session=True, env={**os.environ, LOG: str(log)})  # noqa: S603 - itself


def lines(log: Path) -> list[str]:
    """Tasks that were started, by their names."""
    return log.read_text(encoding="utf-8").split() if log.exists() else []


def kill_at_random(process: "subprocess.Popen[bytes]", folder: Path, log: Path, moments: random.Random) -> None:
    """A third of the times while the run starts up, a third among its first tasks, a third as it writes a file."""
    kind = moments.randrange(3)
    if kind == 0:
        time.sleep(moments.uniform(0, 2))
    while process.poll() is None and ((kind == 1 and not lines(log)) or (kind == 2 and not half_written(folder))):
        time.sleep(0.001)
    if kind == 1:
        time.sleep(moments.uniform(0, 0.5))
    if process.poll() is not None:
        sys.exit(f"a run ended with code {process.returncode} before it was killed")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def half_written(folder: Path) -> bool:
    """Whether a result is being written, or was when the run was killed."""
    return any(folder.glob("cells/.*.part"))


def finish(folder: Path, log: Path) -> None:
    """Run what is missing to the end."""
    if code := run(folder, log).wait(timeout=300):
        sys.exit(f"a run that nothing disturbed ended with code {code}")


def files_in(folder: Path) -> dict[str, bytes]:
    """Content by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(place: Path, kills: int, seed: int) -> str:
    """Kill, resume, compare; say in a line what was seen."""
    moments = random.Random(seed)
    disturbed, undisturbed = place / "disturbed", place / "undisturbed"
    again: list[str] = []
    started: Counter[str] = Counter()
    halves = 0
    for number in range(kills + 1):
        done = {path.stem for path in disturbed.glob("cells/*.json")}
        log = place / f"log-{number}.txt"
        if number < kills:
            kill_at_random(run(disturbed, log), disturbed, log, moments)
            halves += half_written(disturbed)
        else:
            finish(disturbed, log)
        again += done.intersection(lines(log))
        started.update(lines(log))
    finish(undisturbed, place / "log.txt")
    left, right = files_in(disturbed), files_in(undisturbed)
    differing = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
    if again or differing or len(right) != TASKS + 1:
        sys.exit(f"run again though finished: {again}; files that differ: {differing}; files: {len(right)}")
    return (
        f"{kills} kills (seed {seed}), {halves} left a half-written file; {TASKS} tasks in {started.total()} starts, "
        f"none run again once finished; all {len(right)} files byte for byte those of an undisturbed run"
    )


def main() -> None:
    """Check, or be the experiment that is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        tasks = [Task(key(number), {"number": number}) for number in range(TASKS)]
        run_tasks(cell, tasks, options.run, settings={"schema": 1, "tasks": TASKS}, workers=2)
        return
    with TemporaryDirectory() as place:
        print(check(Path(place), options.kills, options.seed))


if __name__ == "__main__":
    main()
