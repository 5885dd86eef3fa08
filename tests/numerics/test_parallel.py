"""One thread or two, one worker or two: the same bits."""

from dataclasses import asdict

import numpy as np
import pytest

from onlooker import (
    BanditLog,
    Environment,
    LinTS,
    LinUCB,
    SuffixImitation,
    TrackingObserver,
    burn_in_sweep,
    diagnose,
    scan_log,
    simulate,
    write_log,
)
from onlooker.evaluation.comparison import compare
from onlooker.experiments.grid import Grid
from onlooker.experiments.paper import Paper
from onlooker.experiments.runner import run_tasks
from onlooker.imitation.softmax import SoftmaxObjective


def many_blocks():
    """Rounds enough for several blocks of work, so that two threads share it."""
    rng = np.random.default_rng(41)
    X = rng.normal(size=(6000, 30, 12)).astype(np.float32)
    return BanditLog.from_dense(X, (X @ np.linspace(-1, 1, 12) + rng.gumbel(size=(6000, 30))).argmax(axis=1))


def few_features(log):
    """The same with two features: the search for the smallest 0-1 loss soon ends there."""
    return BanditLog(log.features[:, :2], log.offsets, log.chosen)


def bits(value):
    """Arrays and numbers by their bytes, everything else as it is."""
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    return value.hex() if isinstance(value, float) else value


def learned(observer):
    return {name: bits(value) for name, value in vars(observer).items() if name.endswith("_")}


STAGES = {
    "fit": lambda log: learned(SuffixImitation(burn_in="naive").fit(log)),
    "fit, auto": lambda log: learned(SuffixImitation(burn_in="auto", covariance="model").fit(log)),
    "fit, 0-1 loss": lambda log: learned(SuffixImitation(burn_in="naive", loss="zero_one").fit(few_features(log))),
    "sweep": lambda log: bits(burn_in_sweep(log).thetas),
    "tracking": lambda log: bits(TrackingObserver().fit(log[:1200]).theta_),
    "diagnosis": lambda log: repr(diagnose(log[:3000]).to_dict()),
}


def test_there_is_work_for_two_threads():
    assert len(SoftmaxObjective(many_blocks(), l2=0.0)._blocks) > 2


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize("stage", STAGES)
def test_threads(stage, monkeypatch):
    log, found = many_blocks(), []
    for threads in ("1", "2"):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        answer = STAGES[stage](log)
        if isinstance(answer, dict):
            answer["policy_"] = bits(answer["policy_"].theta)
        found.append(answer)
    assert found[0] == found[1]


def test_threads_on_a_log_that_is_not_in_memory(monkeypatch, tmp_path):
    write_log(many_blocks(), tmp_path / "log.parquet")
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        scan = scan_log(tmp_path / "log.parquet")
        found.append(
            (bits(SuffixImitation(burn_in="rule").fit(scan).theta_), bits(burn_in_sweep(scan, [0.0, 0.9]).thetas))
        )
    assert found[0] == found[1]


def test_threads_in_simulation_and_comparison(monkeypatch):
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        log = simulate(Environment(8, 40, seed=3), LinTS(), 1500, seed=3).log
        rows = [{**asdict(row), "seconds": None} for row in compare(log).rows]
        found.append((bits(log.features), bits(log.chosen), rows))
    assert found[0] == found[1]


@pytest.mark.slow
def test_workers_of_a_reproduction(tmp_path):
    """Its cells of both kinds; tables, claims and figures follow from them in one process."""
    learners = {"LinUCB": LinUCB(), "LinTS": LinTS()}
    grid = Grid(environments=[(3, 6)], learners=learners, horizons=[200, 400], seeds=range(2))
    paper, found = Paper(grid=grid, diagnosed=(3, 6, 400)), []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        run_tasks(paper, paper.tasks(), folder, settings=paper.settings(), workers=workers)
        found.append({path.name: path.read_bytes() for path in folder.glob("cells/*.json")})
    assert len(found[0]) == 6
    assert found[0] == found[1]
