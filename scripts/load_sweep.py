"""Many small cells through the machinery of `onlooker reproduce`: killed half-way, resumed, checked."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resident import children, resident

from onlooker import OFUL, EpsilonGreedy, LinTS, LinUCB
from onlooker.experiments.grid import COLUMNS, Grid, run_grid
from onlooker.experiments.tables import read_csv, write_csv

HERE = Path(__file__).parent
WORKER_GROWTH = 10.0
"""Megabytes that a worker may grow by after the first tenth of the cells."""
TABLE_PER_CELL = 0.008
"""Megabytes a cell that the process which holds the table may grow by: its rows."""
RECOMPUTED = 20
"""Cells whose rows are computed again, alone, to compare."""


def grid_of(cells: int) -> Grid:
    """Four learners in five environments, over as many seeds as make so many cells."""
    environments = [(2, 3), (2, 5), (3, 4), (4, 4), (5, 6)]
    learners = {"LinUCB": LinUCB(), "LinTS": LinTS(), "OFUL": OFUL(), "greedy": EpsilonGreedy(0.1)}
    if cells % (len(environments) * len(learners)):
        sys.exit(f"--cells {cells}: use a multiple of {len(environments) * len(learners)}")
    seeds = range(cells // (len(environments) * len(learners)))
    return Grid(environments=environments, learners=learners, horizons=[60], seeds=seeds, alphas=(0.5, 0.9))


def run(cells: int, folder: Path, workers: int) -> None:
    """Run what is missing, and write the table."""
    rows = run_grid(grid_of(cells), folder, workers=workers)
    write_csv(folder / "table.csv", rows, COLUMNS)


def check(cells: int, folder: Path, workers: int) -> str:
    """Kill, resume, compare; say in a line what was seen."""
    grid, started = grid_of(cells), time.monotonic()
    first = _watch(cells, folder, workers, until=lambda done: done >= cells // 2)
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("cells/*.json")}
    print(f"killed with {len(before):,} of {cells:,} cells done; {_words(first)}", flush=True)
    second = _watch(cells, folder, workers, until=lambda _: False)
    print(f"resumed to the end after {time.monotonic() - started:.0f} s; {_words(second)}", flush=True)
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("cells/*.json")}
    if after.keys() != {f"{task.key}.json" for task in grid.tasks()}:
        sys.exit(f"{len(after)} cells are there, not the {cells} that the grid has")
    if again := [name for name, when in before.items() if after[name] != when]:
        sys.exit(f"{len(again)} finished cells were written again, {again[0]} for one")
    for name, seen, allowed in (("worker", 1, WORKER_GROWTH), ("table", 0, 5 + TABLE_PER_CELL * cells)):
        for memory in (first, second):
            if max(memory[seen]) - memory[seen][0] > allowed:
                sys.exit(f"{name} process grew by more than {allowed:.0f} MB: {_words(memory)}")
    _check_table(grid, folder)
    return (
        f"{cells:,} cells, each there once, none of the {len(before):,} finished before the kill written again; "
        f"the table holds them all, and {RECOMPUTED} cells computed again are the same to the last digit"
    )


Memory = tuple[list[float], list[float]]
"""Megabytes over time: of the process that holds the table, and of its largest worker."""


def _watch(cells: int, folder: Path, workers: int, *, until: Callable[[int], bool]) -> Memory:
    """Run until all is done, or until so many cells are, when all its processes are killed."""
    command = [sys.executable, str(HERE / "load.py"), "sweep", "--cells", str(cells), "--workers", str(workers)]
    process = subprocess.Popen([*command, "--run", str(folder)], start_new_session=True)  # noqa: S603 - ourselves
    had, held, worked = len(list(folder.glob("cells/*.json"))), list[float](), list[float]()
    while process.poll() is None:
        time.sleep(0.1)
        done = len(list(folder.glob("cells/*.json")))
        # The first tenth of each half is warm-up: imports, compiled code, the allocator's own stock.
        if had + cells // 20 <= done < cells:
            held.append(resident(process.pid))
            worked.append(max((resident(one) for one in children(process.pid)), default=0.0))
        if until(done):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return _smooth(held), _smooth(worked)
    if process.returncode:
        sys.exit(f"the run ended with code {process.returncode}")
    return _smooth(held), _smooth(worked)


def _smooth(samples: list[float]) -> list[float]:
    """Without those of a process that had just ended or begun."""
    return [one for one in samples if one > 50] or [0.0]


def _words(memory: Memory) -> str:
    names = ("process with the table", "largest worker")
    return "; ".join(
        f"{name} {one[0]:.0f} MB, then {one[-1]:.0f} MB, at most {max(one):.0f} MB"
        for name, one in zip(names, memory, strict=True)
    )


def _check_table(grid: Grid, folder: Path) -> None:
    """Every cell's rows once, and those of some cells as they come out alone."""
    table = [{name: row[name] for name in COLUMNS} for row in read_csv(folder / "table.csv")]
    by_cell: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table:
        by_cell.setdefault((row["learner"], row["d"], row["K"], row["seed"]), []).append(row)
    tasks = grid.tasks()
    cells = [tuple(task.arguments[name] for name in ("learner", "d", "K", "seed")) for task in tasks]
    if list(by_cell) != cells or len(table) != len(tasks) * len(by_cell[cells[0]]):
        sys.exit("the table does not hold every cell once, in the grid's order")
    for number in random.Random(0).sample(range(len(tasks)), min(RECOMPUTED, len(tasks))):
        alone = json.loads(json.dumps(grid(**tasks[number].arguments)))
        if alone != by_cell[cells[number]]:
            sys.exit(f"{tasks[number].key}: the table differs from the cell computed alone")
