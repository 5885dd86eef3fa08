"""The parts of the benchmark that need no rival."""

import doctest
import statistics
from subprocess import CompletedProcess

import numpy as np
import pytest
import rivals.race
import rivals.tables
import scaling
from rivals import environments
from rivals.adapters import onlooker_play
from rivals.adapters.numpy_linucb import play
from rivals.adapters.numpy_scipy import fit
from rivals.environments import RivalError, python_of, reason_of
from rivals.methods import FITS, SIMULATIONS, Method
from rivals.problem import Problem, objective
from rivals.race import CLOSE, arrived, least_setting, race
from rivals.tables import chart, fit_table, simulation_table, spread
from rivals.workloads import Workload
from scaling import exponent
from scipy.special import logsumexp

TINY = Workload(400, 8, 3)
OURS = FITS[0]


@pytest.fixture(scope="module")
def problem():
    return TINY.problem()


def run(seconds, **more):
    return {
        "setting": 0,
        "seconds": seconds,
        "processor": 2 * seconds,
        "memory": 5e6,
        "excess": 1e-9,
        "error": 1e-4,
        **more,
    }


def test_objective_is_the_mean_loss_in_double_precision(problem):
    theta = np.array([1.0, -2.0, 0.5])
    scores = problem.X.astype(np.float64) @ theta
    loss = np.mean(logsumexp(scores, axis=1) - scores[np.arange(400), problem.chosen])
    assert objective(problem, theta, penalised=False) == pytest.approx(loss, rel=1e-12)
    assert objective(problem, theta, penalised=True) == pytest.approx(loss + 1e-4 / 2 * 5.25, rel=1e-12)


@pytest.mark.parametrize("penalised", [True, False])
def test_the_minima_are_those_that_scipy_finds(problem, penalised):
    options = {"maxiter": 500, "ftol": 0.0, "gtol": 1e-10}
    theirs = fit(problem.X.astype(np.float64), problem.chosen, problem.l2 if penalised else 0.0, options=options)
    ours = problem.optimum(penalised=penalised)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert objective(problem, ours, penalised=penalised) <= objective(problem, theirs, penalised=penalised) + 1e-13


def test_plain_numpy_makes_the_picks_of_the_log(problem):
    np.testing.assert_array_equal(play(problem.X, problem.theta_star, problem.noise), problem.chosen)


def test_the_learner_alone_makes_the_picks_of_the_log(problem):
    np.testing.assert_array_equal(onlooker_play.prepare(problem)(0), problem.chosen)


def test_a_problem_survives_its_folder(problem, tmp_path):
    problem.write(tmp_path)
    again = Problem.read(tmp_path)
    for name, value in vars(problem).items():
        np.testing.assert_array_equal(getattr(again, name), value)


def test_the_least_setting_is_found_in_few_runs():
    tried = []

    def work(setting):
        tried.append(setting)
        return {"setting": setting, "excess": 10.0**-setting}

    assert least_setting(work, range(1, 33))["setting"] == 6
    assert len(tried) <= 5
    assert least_setting(work, [1, 2, 3])["setting"] == 3
    assert not arrived({"excess": 2 * CLOSE})
    assert not arrived({"excess": float("nan")})
    assert arrived({"rounds": 5})


def test_those_that_fail_leave_with_a_reason_and_the_race_goes_on(problem, tmp_path):
    problem.write(tmp_path)
    lost = Method("lost", "no_such_adapter", "by hand")
    results = race([OURS, lost], tmp_path, tmp_path, repeats=2, timeout=120)
    ours, missing = results
    assert [arrived(run) for run in ours["runs"]] == [True, True]
    assert all(run["error"] < 1e-2 for run in ours["runs"])
    assert missing["runs"] == []
    assert missing["reason"] == "failed: ModuleNotFoundError: No module named 'rivals.adapters.no_such_adapter'"


def test_nobody_is_waited_for_beyond_the_limit(problem, tmp_path):
    problem.write(tmp_path)
    (result,) = race([OURS], tmp_path, tmp_path, repeats=1, timeout=0.001)
    assert result["reason"] == "did not load the data within 0 s"


def test_an_environment_that_cannot_be_made_is_a_reason_without_addresses(tmp_path, monkeypatch):
    said = (
        "Looking in indexes: https://a.example/simple\nERROR: No matching distribution found for b==1\nnotice: update"
    )
    monkeypatch.setattr(
        environments.subprocess, "run", lambda *_, **__: CompletedProcess([], 1, stdout="", stderr=said)
    )
    with pytest.raises(RivalError, match=r"^did not install: ERROR: No matching distribution found for b==1$"):
        python_of(Method("b", "b", "by hand", ("b==1",)), tmp_path)
    assert reason_of("ERROR: see https://a.example/b/c and /home/me/x") == "ERROR: see … and …"


@pytest.mark.parametrize("module", [environments, rivals.race, rivals.tables, scaling])
def test_examples_hold(module):
    tried = doctest.testmod(module)
    assert tried.attempted > 0
    assert tried.failed == 0


def test_tables_give_ratios_and_reasons(tmp_path):
    fits = [
        {"method": "xlogit", "runs": [run(4.0), run(8.0), run(6.0)]},
        {"method": OURS.name, "runs": [run(0.5), run(0.5), run(0.6)]},
        {"method": "larch", "runs": [run(20.0, excess=1e-3)]},
        {"method": "choice-learn", "runs": [], "reason": "did not finish within 300 s"},
    ]
    lines = fit_table(fits).splitlines()
    assert [line.split(" | ")[0].strip("| *") for line in lines[2:]] == [OURS.name, "xlogit", "larch", "choice-learn"]
    assert "6 s (4 to 8) | 12 | 12 s |" in lines[3]
    assert "never closer" in lines[4]
    assert "did not finish within 300 s" in lines[5]
    assert len({line.count("|") for line in lines}) == 1
    rounds = [{"method": m.name, "runs": [run(1.0, rounds=100, same=0.5)]} for m in SIMULATIONS]
    lines = simulation_table(rounds).splitlines()
    assert all("10 ms" in line for line in lines[2:])
    assert "50.0%" in lines[2]
    assert len({line.count("|") for line in lines}) == 1
    chart({"Fit": fits, "Simulation": rounds}, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1000


def test_spread_and_exponent():
    assert spread([0.2, 0.3, 0.25]) == "0.25 s (0.2 to 0.3)"
    assert spread([0.013]) == "13 ms (13 to 13)"
    noisy = np.array([1.0, 2.0, 4.0, 8.0]) * np.exp([0.1, -0.1, -0.1, 0.1])
    slope, low, high = exponent([1, 2, 4, 8], noisy)
    assert slope == pytest.approx(1.0)
    assert low < 1 < high
    assert statistics.mean([low, high]) == pytest.approx(slope)
