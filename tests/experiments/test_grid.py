"""The grid's rows against the library called by hand, and a grid with a learner and an observer of one's own."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onlooker.evaluation.metrics import direction_error, predictive_regret
from onlooker.experiments.grid import COLUMNS, TEST_ROUNDS, Grid, run_grid
from onlooker.imitation.burn_in import HeldOut, power_start
from onlooker.imitation.newton import minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.observers import SuffixImitation
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import LinTS, LinUCB
from onlooker.simulation.play import simulate

GRID = Grid(
    environments=[(4, 10)],
    learners={"LinUCB": LinUCB(), "LinTS": LinTS()},
    horizons=[300, 800],
    seeds=range(2),
    alphas=(0.0, 0.5, 0.9),
    observers={"half": SuffixImitation(burn_in=0.5)},
)


def test_rows_are_what_the_library_finds():
    rows = GRID("LinTS", d=4, K=10, seed=1)
    environment = Environment(4, 10, seed=1)
    test = environment.test_log(TEST_ROUNDS, seed=1)
    expected = []
    for N in (300, 800):
        played = simulate(environment, LinTS(), N, seed=1)
        burn_ins = {"naive": 0, "rule": power_start(N, 0.9), "auto": HeldOut().start(played.log), "half": N // 2}
        thetas = {"learner": played.learner_theta}
        for name, burn_in in burn_ins.items():
            thetas[name] = minimise(SoftmaxObjective(played.log.suffix(burn_in), l2=1e-4)).theta
        for name, theta in thetas.items():
            expected.append(
                (
                    *(N, name, burn_ins.get(name)),
                    pytest.approx(direction_error(theta, environment.theta_star), rel=1e-3),
                    pytest.approx(predictive_regret(theta, environment.theta_star, test), rel=0.05, abs=1e-6),
                )
            )
    fields = ("N", "method", "burn_in", "direction_error", "predictive_regret")
    found = [tuple(row[field] for field in fields) for row in rows if row["method"] != "sweep"]
    assert sorted(found, key=lambda row: row[:2]) == sorted(expected, key=lambda row: row[:2])
    assert [(row["N"], row["alpha"], row["burn_in"]) for row in rows if row["method"] == "sweep"] == [
        (N, alpha, power_start(N, alpha)) for N in (300, 800) for alpha in (0.0, 0.5, 0.9)
    ]
    assert all(tuple(row) == COLUMNS for row in rows)


def test_the_number_of_workers_changes_nothing(tmp_path):
    one = run_grid(GRID, tmp_path / "one", workers=1)
    two = run_grid(GRID, tmp_path / "two", workers=2)
    assert one == two
    assert len(one) == 2 * 2 * 2 * (1 + 3 + 3 + 1)
    for path in (tmp_path / "one" / "cells").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / "cells" / path.name).read_bytes()


def test_seeds_can_be_added_to_a_folder(tmp_path):
    few = Grid(environments=[(2, 4)], learners={"LinUCB": LinUCB()}, horizons=[200], seeds=range(1), alphas=(0.5,))
    more = Grid(environments=[(2, 4)], learners={"LinUCB": LinUCB()}, horizons=[200], seeds=range(2), alphas=(0.5,))
    first = run_grid(few, tmp_path, workers=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert run_grid(more, tmp_path, workers=1)[: len(first)] == first
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())


def test_the_example_runs(tmp_path):
    example = Path(__file__).parent.parent.parent / "examples" / "own_learner_and_observer.py"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True, env=environment)
    errors = {tuple(line.split()[2:-1]): float(line.split()[-1]) for line in done.stdout.splitlines()}
    assert len(errors) == 10
    assert errors["1000", "learner"] < errors["500", "learner"]
    assert np.isfinite(list(errors.values())).all()
