"""Bounds against tail inequalities solved by hand, brute force on small problems, and simulated observers."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from bounds_cells import bound_cell
from hypothesis import given, settings
from hypothesis import strategies as st
from onlooker.bounds import (
    TRIVIAL_REGRET,
    any_learner_regret_bound,
    any_learner_risk_bound,
    best_burn_in,
    clean_risk_bound,
    corollary_bound,
    eta_from_gaps,
    eta_from_regret,
    eta_from_simulation,
    log_growth,
    natarajan_dimension,
    predictive_regret_bound,
    regret_from_risk,
    reward_gaps,
    risk_from_excess,
    risk_from_sample,
    uniform_deviation,
)

from onlooker import BanditLog, Environment, InputError, LinUCB, simulate

DIMENSIONS = ("sharp", "paper")
sizes = st.integers(1, 10**9)
shares = st.floats(0, 1)
deltas = st.floats(0, 1, exclude_min=True)
kinds = st.sampled_from(DIMENSIONS)


def picks_in_the_plane(offers):
    """Every sequence of picks that some theta in the plane makes: all arcs between ties, the ties, and zero."""
    differences = np.concatenate([arms[a] - arms[b] for arms in offers for a, b in pairs(len(arms))]).reshape(-1, 2)
    ties = np.sort(np.concatenate([np.arctan2(-differences[:, 0], differences[:, 1]) + k * np.pi for k in (-1, 0, 1)]))
    angles = np.concatenate([ties, (ties[1:] + ties[:-1]) / 2])
    thetas = np.concatenate([np.column_stack([np.cos(angles), np.sin(angles)]), np.zeros((1, 2))])
    return {tuple(row) for row in np.column_stack([(thetas @ arms.T).argmax(axis=1) for arms in offers])}


def pairs(n):
    return itertools.combinations(range(n), 2)


def test_as_many_rounds_as_features_are_shattered():
    d = 4
    offers = [np.array([unit, -unit]) for unit in np.eye(d)]
    thetas = np.array(list(itertools.product((-1.0, 1.0), repeat=d)))
    patterns = {tuple((arms @ theta).argmax() for arms in offers) for theta in thetas}
    assert len(patterns) == 2 ** natarajan_dimension(d, 2) == 2 ** natarajan_dimension(d, 2, dimension="paper")


def test_three_rounds_are_never_shattered_in_the_plane():
    random = np.random.default_rng(0)
    for _ in range(100):
        found = picks_in_the_plane(random.normal(size=(3, 4, 2)))
        for choice in itertools.product(pairs(4), repeat=3):
            assert not set(itertools.product(*choice)) <= found


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize(("n", "K"), [(1, 2), (1, 9), (2, 5), (5, 2), (12, 3), (40, 6)])
def test_growth_is_no_less_than_what_is_counted(n, K, dimension):
    random = np.random.default_rng(n + K)
    counted = max(len(picks_in_the_plane(random.normal(size=(n, K, 2)))) for _ in range(20))
    assert counted <= math.exp(log_growth(n, 2, K, dimension=dimension)) * (1 + 1e-12)


def test_the_papers_growth_without_the_number_of_arms_is_too_small():
    """One round of K arms on a circle can be answered in K ways by two features: no (c L)^d with one c for all K."""
    K = 200
    turns = 2 * np.pi * np.arange(K) / K
    counted = len(picks_in_the_plane([np.column_stack([np.cos(turns), np.sin(turns)])]))
    assert counted == K
    assert math.log(counted) <= log_growth(1, 2, K) * (1 + 1e-12)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize(("n", "d", "K", "delta"), [(400, 2, 3, 0.1), (5000, 3, 4, 0.001), (50, 1, 2, 0.9)])
def test_deviations_solve_their_tail_inequalities(n, d, K, delta, dimension):
    once, twice = (math.exp(log_growth(m, d, K, dimension=dimension)) for m in (n, 2 * n))
    hoeffding = math.sqrt(math.log(2 * once / (delta / 2)) / (2 * n))
    sample = math.log2(twice**2 / (delta / 4)) / n
    population = 2 * math.log2(2 * twice**2 / (delta / 4)) / n
    assert uniform_deviation(n, d, K, delta, dimension=dimension) == pytest.approx(hoeffding + sample + population)
    for share in (0.0, 0.2, 1.0):
        risk = risk_from_sample(share, n, d, K, delta, dimension=dimension)
        epsilon = (risk - share) / math.sqrt(risk)
        assert 4 * twice * math.exp(-n * epsilon**2 / 4) == pytest.approx(delta)


def test_massart_transfer_on_finite_problems():
    """Lemma 2 for every policy over three contexts, where the probability of each pick is known."""
    random = np.random.default_rng(1)
    for _ in range(50):
        eta, weights = random.uniform(0, 0.49), random.dirichlet(np.ones(3))
        picks = np.array([[1 - e, *(e * random.dirichlet(np.ones(3)))] for e in random.uniform(0, eta, size=3)])
        best = weights @ (1 - picks[:, 0])
        for policy in itertools.product(range(4), repeat=3):
            noisy = weights @ (1 - picks[np.arange(3), list(policy)])
            risk = weights @ (np.array(policy) != 0)
            assert risk <= risk_from_excess(max(0.0, noisy - best), eta) + 1e-12
    assert risk_from_excess(0.3, 0.0) == 0.3
    assert risk_from_excess(0.1, 0.5) == risk_from_excess(math.inf, 0.1) == math.inf


def test_lemma_one_is_reached_by_opposite_arms():
    theta = np.array([0.6, -0.8])
    offers = BanditLog.from_dense(np.array([[3 * theta, -3 * theta]]), chosen=[0])
    (gap,) = reward_gaps(2 * theta, offers)
    assert gap == pytest.approx(regret_from_risk(1.0, feature_norm=3.0, theta_norm=2.0)) == 12.0
    assert regret_from_risk(0.25) == 0.25 * TRIVIAL_REGRET


@given(sizes, sizes, sizes, deltas, shares, st.floats(0, 1), kinds)
def test_bounds_are_never_nan_nor_negative(n, d, K, delta, eta, thrown, dimension):
    burn_in = min(n - 1, int(thrown * n))
    for bound in (clean_risk_bound, predictive_regret_bound, any_learner_risk_bound, any_learner_regret_bound):
        assert bound(n, burn_in, d, K, delta, eta, dimension=dimension) >= 0


@given(st.integers(2, 10**6), sizes, sizes, deltas, shares, st.data(), kinds)
def test_bounds_grow_with_d_k_eta_burn_in_and_confidence(n, d, K, delta, eta, data, dimension):
    T = data.draw(st.integers(0, n - 1))
    harder = {
        "n_features": data.draw(st.integers(d, 10**9)),
        "n_arms": data.draw(st.integers(K, 10**9)),
        "burn_in": data.draw(st.integers(T, n - 1)),
        "delta": data.draw(st.floats(0, delta, exclude_min=True)),
    }
    given_sizes = {"n_rounds": n, "burn_in": T, "n_features": d, "n_arms": K, "delta": delta}
    for bound, noise in ((predictive_regret_bound, "eta"), (any_learner_regret_bound, "mistakes")):
        easy = bound(**given_sizes, **{noise: eta}, dimension=dimension)
        for name, value in harder.items():
            worse = bound(**(given_sizes | {name: value}), **{noise: eta}, dimension=dimension)
            assert worse >= easy * (1 - 1e-12), name
        assert bound(**given_sizes, **{noise: data.draw(st.floats(eta, 1))}, dimension=dimension) >= easy


@given(st.integers(1, 10**6), sizes, st.integers(2, 10**9), deltas)
def test_the_papers_dimension_is_never_smaller(n, d, K, delta):
    assert natarajan_dimension(d, K, dimension="paper") >= natarajan_dimension(d, K)
    assert log_growth(n, d, K) <= log_growth(n, d, K, dimension="paper") * (1 + 1e-12)
    assert uniform_deviation(n, d, K, delta) <= uniform_deviation(n, d, K, delta, dimension="paper") * (1 + 1e-12)


def test_the_papers_rate():
    """The bound falls like N^-1/2 up to a logarithm, in N and in the corollary."""
    horizons = [10**9, 10**11]
    for bounds in (
        [predictive_regret_bound(n, n // 2, 20, 50, 0.05, 0.1) for n in horizons],
        [corollary_bound(n, 20, 50, 0.05, regret_constant=1.0, gap=0.1) for n in horizons],
    ):
        assert -0.5 < math.log(bounds[1] / bounds[0]) / math.log(100) < -0.45


def test_the_corollary_is_theorem_two_with_its_eta():
    expected = predictive_regret_bound(10_000, 3981, 5, 10, 0.1, eta=0.4 / 0.05 / math.sqrt(3981), dimension="paper")
    found = corollary_bound(10_000, 5, 10, 0.1, regret_constant=0.4, gap=0.05, dimension="paper")
    assert found == pytest.approx(expected)
    assert corollary_bound(10_000, 5, 10, 0.1, regret_constant=0.4, gap=0.001) == math.inf


def test_a_small_mean_of_mistakes_is_not_enough_for_theorem_two():
    """A learner that is wrong for good in three runs of ten, whatever the context: the printed condition holds.

    With 300,000 rounds the printed bound excludes what an observer of such a run is led to.
    """
    n, eta = 300_000, 0.3
    offers = np.random.default_rng(0).uniform(-1, 1, size=(n, 2))
    picks = offers.argmin(axis=1)
    agreed = {sign: np.mean((sign * offers).argmax(axis=1) == picks) for sign in (-1, 1)}
    assert agreed[-1] == 1.0
    regret = np.abs(offers[:, 0] - offers[:, 1]).mean()
    assert regret > 5 * predictive_regret_bound(n, 0, 1, 2, delta=0.05, eta=eta)
    assert regret <= any_learner_regret_bound(n, 0, 1, 2, delta=0.05, mistakes=1.0)


@pytest.mark.parametrize("learner", ["LinUCB", "LinTS"])
def test_bounds_lie_above_the_measured_regret(learner):
    rows = bound_cell(learner, 10, 20, 0, horizons=[500, 3000], alphas=[0.0, 0.5, 0.8, 0.9, 0.95], delta=0.05)
    assert len(rows) == 10
    for row in rows:
        assert 0 < row["regret"] < row["any_learner"]
        assert row["regret"] <= 2 * row["risk"]
        for key in ("theorem_sharp", "theorem_paper"):
            assert row[key] is None if row["eta"] >= 0.5 else row[key] > row["regret"]
    assert learner == "LinTS" or min(row["any_learner"] for row in rows) < TRIVIAL_REGRET


def test_the_any_learner_argument_on_a_simulated_log():
    """Where policy and best arm differ, the policy differs from the pick or the pick was wrong."""
    played = simulate(Environment(3, 5), LinUCB(), 400)
    best = Environment(3, 5).theta_star
    for theta in np.random.default_rng(0).normal(size=(20, 3)):
        choices = [np.array([(played.log.arms(t) @ w).argmax() for t in range(400)]) for w in (theta, best)]
        differ = np.mean(choices[0] != choices[1])
        assert differ <= np.mean(choices[0] != played.log.chosen) + eta_from_simulation(played).share[0]


def test_eta_from_a_simulation_counts_suffix_by_suffix():
    played = simulate(Environment(4, 6, seed=3), LinUCB(), 150, seed=3)
    wrong = [np.argmax(played.log.arms(t) @ played.theta_star) != played.log.chosen[t] for t in range(150)]
    eta = eta_from_simulation(played, delta=0.2)
    for T in (0, 1, 77, 149):
        assert eta.share[T] == pytest.approx(np.mean(wrong[T:]))
        assert eta(T) == pytest.approx(min(1.0, np.mean(wrong[T:]) + math.sqrt(math.log(150 / 0.2) / (2 * (150 - T)))))
    with pytest.raises(InputError, match="burn_in is 150 of 150 rounds"):
        eta(150)


def test_the_upper_limit_covers_the_probability_of_a_mistake():
    """Picks that are wrong with a known probability: the limit fails in at most delta of the logs."""
    random = np.random.default_rng(0)
    offers, best = np.tile([[1.0], [0.0]], (200, 1, 1)), np.ones(1)
    played = simulate(Environment(1, 2), LinUCB(), 200)
    failures = 0
    for _ in range(200):
        log = BanditLog.from_dense(offers, chosen=(random.random(200) < 0.3).astype(int))
        run = type(played)(log=log, rewards=played.rewards, theta_star=best, learner=played.learner, seed=0)
        failures += bool((eta_from_simulation(run, delta=0.1).upper < 0.3).any())
    assert failures <= 20


def test_eta_from_regret_and_gaps():
    assert eta_from_regret(10.0, 0, gap=0.1) == eta_from_regret(1e9, 5, gap=0.1) == 1.0
    random = np.random.default_rng(2)
    gaps = np.concatenate([random.exponential(0.1, size=300), np.zeros(5), np.full(4, 0.2)])
    slack = math.sqrt(math.log(2 / 0.1) / (2 * len(gaps)))
    by_hand = min(
        eta_from_regret(2.0, 1000, gap=g, small_gap=float(np.mean(gaps < g))) for g in np.linspace(1e-4, 1, 20_000)
    )
    assert by_hand >= eta_from_gaps(2.0, 1000, gaps, delta=0.1) - slack >= by_hand - 1e-3
    assert eta_from_gaps(2.0, 0, gaps) == eta_from_gaps(2.0, 10, np.zeros(3)) == 1.0


def test_gaps_hold_mistakes_within_regret():
    """P(mistake) <= P(lead < g) + regret / g in a simulated learner's own rounds, for every g."""
    played = simulate(Environment(5, 10), LinUCB(), 500)
    gaps, regret = reward_gaps(played.theta_star, played.log), played.regret
    ranked = [np.sort(played.log.arms(t).astype(float) @ played.theta_star) for t in range(500)]
    assert gaps == pytest.approx([scores[-1] - scores[-2] for scores in ranked])
    for g in np.quantile(gaps, [0.05, 0.2, 0.5, 0.9]):
        assert np.mean(regret > 0) <= np.mean(gaps < g) + regret.mean() / g


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(1, 5), st.integers(2, 5), deltas, st.floats(0, 5), kinds)
def test_the_best_burn_in_is_that_of_brute_force(n, d, K, delta, constant, dimension):
    def eta(T):
        return min(1.0, constant / math.sqrt(T + 1))

    values = [predictive_regret_bound(n, T, d, K, delta, eta(T), dimension=dimension) for T in range(n)]
    found = best_burn_in(n, d, K, delta, eta, dimension=dimension)
    assert found == (int(np.argmin(values)), min(values))


def test_the_best_burn_in_with_an_eta_that_rises_and_falls():
    noise = np.random.default_rng(0).uniform(0.05, 0.7, size=400)
    values = [predictive_regret_bound(400, T, 3, 4, 0.05, noise[T]) for T in range(400)]
    assert best_burn_in(400, 3, 4, 0.05, lambda T: noise[T]).burn_in == int(np.argmin(values))


def test_the_best_burn_in_of_a_long_log_has_a_closed_form():
    n, c = 10**8, 2.0
    closed = (2 * c * n) ** (2 / 3)
    tried = [int(closed * f) for f in np.linspace(0.5, 2, 301)]
    bounds = [predictive_regret_bound(n, T, 20, 50, 0.05, eta_from_regret(c * T**0.5, T, 1.0)) for T in tried]
    assert tried[int(np.argmin(bounds))] == pytest.approx(closed, rel=0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_rounds": 0}, "n_rounds is 0"),
        ({"n_rounds": 2**70}, "of at most 9223372036854775807"),
        ({"burn_in": 100}, "burn_in is 100 of 100 rounds"),
        ({"burn_in": -1}, "burn_in is -1"),
        ({"n_features": 2.5}, "n_features is 2.5"),
        ({"n_arms": 0}, "n_arms is 0"),
        ({"delta": 0}, "delta is 0"),
        ({"delta": float("nan")}, "delta is nan"),
        ({"eta": 1.5}, "eta is 1.5"),
        ({"eta": "often"}, "eta is 'often'"),
        ({"dimension": "blunt"}, "dimension is 'blunt'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(change, words):
    arguments = {"n_rounds": 100, "burn_in": 10, "n_features": 2, "n_arms": 3, "delta": 0.05, "eta": 0.1} | change
    with pytest.raises(InputError) as caught:
        predictive_regret_bound(**arguments)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: eta_from_regret(1.0, 10, gap=0.0),
        lambda: eta_from_gaps(1.0, 10, gaps=[]),
        lambda: eta_from_gaps(1.0, 10, gaps=[0.1, -0.1]),
        lambda: risk_from_excess(-0.1, 0.2),
        lambda: regret_from_risk(float("nan")),
        lambda: any_learner_regret_bound(100, 10, 2, 3, 0.05, mistakes=0.1, disagreement=1.1),
        lambda: corollary_bound(100, 2, 3, 0.05, regret_constant=1.0, gap=0.1, exponent=1.0),
    ],
)
def test_parts_refuse_too(call):
    with pytest.raises(InputError):
        call()


def test_bounds_load_when_first_used():
    lines = (
        "import sys, onlooker",
        "assert 'numpy' not in sys.modules and 'bounds' in dir(onlooker)",
        "print(onlooker.bounds.predictive_regret_bound(1000, 100, 2, 3, 0.05, 0.1) > 0)",
    )
    found = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert found.stdout == "True\n"
