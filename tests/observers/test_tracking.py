"""The tracking observer: names the learner, comes as close as it, follows its path, and stays upright when misled."""

import json
import math
import warnings

import numpy as np
import pytest
from scipy.stats import norm

from onlooker import (
    TS,
    UCB,
    BanditLog,
    Boltzmann,
    Environment,
    EpsilonGreedy,
    ExploreThenCommit,
    InputError,
    Lapse,
    LinTS,
    LinUCB,
    Softmax,
    SuffixImitation,
    TrackingObserver,
    UniformRandom,
    direction_error,
    simulate,
)
from onlooker.base.errors import (
    CollinearFeaturesWarning,
    NoFamilyFitsWarning,
    NoPreferenceWarning,
    OneArmRoundsWarning,
    OnlookerWarning,
    RepeatedRoundsWarning,
    TooFewRoundsWarning,
)

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning")

SEEDS = (0, 1)
LEARNERS = {"UCB": LinUCB(), "TS": LinTS(), "Lapse": EpsilonGreedy(0.05), "Softmax": Boltzmann(0.05)}
CONSTANTS = {"UCB": 1.0, "TS": 10.0, "Lapse": 0.05, "Softmax": 0.5}
"""The learners' own, in units of the reward noise of 0.1."""


@pytest.fixture(scope="module")
def simulations():
    return {
        (name, seed): simulate(Environment(10, 20, seed=seed), learner, 2500, seed=seed)
        for name, learner in LEARNERS.items()
        for seed in SEEDS
    }


@pytest.fixture(scope="module")
def observers(simulations):
    return {key: TrackingObserver().fit(one.log) for key, one in simulations.items()}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", LEARNERS)
def test_the_learner_is_named(observers, name, seed):
    observer = observers[name, seed]
    assert observer.exploration_.name == name
    assert max(observer.evidence_, key=observer.evidence_.get) == name
    assert 1 / 4 <= observer.exploration_.strength / CONSTANTS[name] <= 4
    assert observer.fits_
    assert observer.warnings_ == ()


@pytest.mark.parametrize("name", ["UCB", "Lapse"])
def test_it_comes_as_close_as_the_learner(simulations, observers, name):
    own, found = ([], [])
    for seed in SEEDS:
        simulation = simulations[name, seed]
        own.append(direction_error(simulation.learner_theta, simulation.theta_star))
        found.append(direction_error(observers[name, seed].theta_, simulation.theta_star))
    assert np.mean(found) < 1.25 * np.mean(own)


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.PenaltyDominatesWarning")
@pytest.mark.parametrize("name", LEARNERS)
def test_it_beats_throwing_rounds_away(simulations, observers, name):
    tracked, imitated = ([], [])
    for seed in SEEDS:
        simulation = simulations[name, seed]
        tracked.append(direction_error(observers[name, seed].theta_, simulation.theta_star))
        suffix = SuffixImitation(burn_in="rule").fit(simulation.log)
        imitated.append(direction_error(suffix.theta_, simulation.theta_star))
    assert np.mean(tracked) < np.mean(imitated)


def test_the_path_covers_the_learners_own(simulations, observers):
    inside = []
    for key, simulation in simulations.items():
        path = observers[key].path_
        late = path.rounds > 50
        thetas = np.array(simulation.learner_path(path.rounds[late]))
        directions = thetas / np.linalg.norm(thetas, axis=1, keepdims=True)
        inside.append(np.abs(directions - path.direction[late]) < 1.96 * path.standard_error[late])
    assert 0.85 <= np.mean(inside) < 1.0


def test_the_path_ends_where_the_log_does(observers):
    for observer in observers.values():
        path = observer.path_
        assert path.rounds[0] == 1
        assert path.rounds[-1] == observer.n_rounds_ == 2500
        assert (np.diff(path.rounds) > 0).all()
        np.testing.assert_allclose(np.linalg.norm(path.direction, axis=1), 1.0)
        # Known better and better.
        assert path.standard_error[-1].max() < 0.1 < path.standard_error[3].max()


def test_intervals_cover_the_truth(simulations, observers):
    inside = []
    for key, simulation in simulations.items():
        summary = observers[key].summary()
        truth = simulation.theta_star / np.linalg.norm(simulation.theta_star)
        inside += [row.low < value < row.high for row, value in zip(summary.coefficients, truth, strict=True)]
    assert 0.85 <= np.mean(inside) < 1.0


@pytest.mark.parametrize("name", LEARNERS)
def test_predicted_shares_are_borne_out_on_fresh_rounds(observers, name):
    """The learner goes on by its rule, but its estimate is held where the observer stopped."""
    learned = simulate(Environment(10, 20, seed=0), LEARNERS[name], 3000, seed=0).log
    fresh = learned[2500:]
    probabilities = observers[name, 0].predict_proba(fresh)
    np.testing.assert_allclose(np.add.reduceat(probabilities, fresh.offsets[:-1]), 1.0)
    assert (probabilities >= 0).all()
    picked = np.zeros(len(probabilities))
    picked[fresh.chosen_rows] = 1.0
    edges = np.array([0.0, 0.02, 0.1, 0.3, 0.6, 0.9, 1.01])
    place = np.digitize(probabilities, edges)
    for one in np.unique(place):
        these = place == one
        expected, variance = probabilities[these].mean(), (probabilities * (1 - probabilities))[these].sum()
        reach = 4 * math.sqrt(variance) / these.sum() + 0.05
        assert abs(picked[these].mean() - expected) < reach


@pytest.mark.parametrize("kind", [UCB(1.0), TS(5.0), Lapse(0.1)], ids=lambda kind: kind.name)
@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_two_arms_have_a_closed_form(kind):
    simulation = simulate(Environment(3, 2, seed=1), LinTS(), 400, seed=1)
    observer = TrackingObserver(exploration=kind).fit(simulation.log)
    follower = observer._monitor.follower
    model, belief = follower.assumption.model(), follower.belief
    offers = simulation.log.features.reshape(-1, 2, 3).astype(np.float64)
    turn = np.eye(3) - model.shrink * belief.inverse
    scores = offers @ turn @ belief.mean
    scores += model.width * np.sqrt(np.einsum("tki,ij,tkj->tk", offers, belief.inverse, offers))
    between = offers[:, 0] - offers[:, 1]
    spread = turn @ belief.spread @ turn.T + model.sampling * belief.inverse
    deviation = np.sqrt(np.einsum("ti,ij,tj->t", between, spread, between) + 2 * model.jitter)
    first = norm.cdf((scores[:, 0] - scores[:, 1]) / deviation)
    expected = np.stack([first, 1 - first], axis=1) * (1 - model.lapse) + model.lapse / 2
    # Beyond four deviations a rival is taken for beaten.
    np.testing.assert_allclose(observer.predict_proba(simulation.log).reshape(-1, 2), expected, atol=4e-5)


def test_uniform_picks_have_no_preference():
    log = simulate(Environment(5, 10, seed=3), UniformRandom(), 1000, seed=3).log
    with pytest.warns(NoPreferenceWarning, match="nothing to track"):
        observer = TrackingObserver().fit(log)
    assert observer.exploration_ is None
    assert not observer.fits_
    (said,) = observer.summary().words
    assert said == "No preference was found: no weights for the features explain the picks of the first 1000 rounds."
    np.testing.assert_allclose(observer.predict_proba(log), 0.1, atol=0.05)


def test_a_learner_of_another_kind_fits_no_family():
    log = simulate(Environment(10, 20, seed=0), ExploreThenCommit(500), 2500, seed=0).log
    with pytest.warns(NoFamilyFitsWarning, match="none of the known learners"):
        observer = TrackingObserver().fit(log)
    assert not observer.fits_
    assert observer.exploration_ is None
    assert observer.summary().words[0].startswith("None of the known learners explains the picks better than a model")


class Forgetful:
    """Picks by the rewards of its last 20 picks alone."""

    def __init__(self):
        self.seen = []

    def choose(self, features):
        if not self.seen:
            return 0
        rows, rewards = np.array([row for row, _ in self.seen]), np.array([reward for _, reward in self.seen])
        return int(np.argmax(features @ np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ rewards)))

    def update(self, features, reward):
        self.seen = [*self.seen[-19:], (features.astype(np.float64), reward)]


def test_a_learner_that_forgets_fits_no_family():
    log = simulate(Environment(10, 20, noise=1.0, seed=0), Forgetful(), 2500, seed=0).log
    with pytest.warns(NoFamilyFitsWarning, match="none of the known learners"):
        TrackingObserver().fit(log)


@pytest.fixture(scope="module")
def simulation():
    return simulate(Environment(5, 8, seed=7), LinUCB(), 800, seed=7)


def finite(observer, log):
    assert np.isfinite(observer.theta_).all()
    assert np.isfinite(observer.covariance_).all()
    assert np.linalg.eigvalsh(observer.covariance_)[0] > 0
    assert all(map(math.isfinite, observer.evidence_.values()))
    assert np.isfinite(observer.path_.theta).all()
    assert np.isfinite(observer.path_.standard_error).all()
    np.testing.assert_allclose(np.add.reduceat(observer.predict_proba(log), log.offsets[:-1]), 1.0)
    json.dumps(observer.summary().to_dict())
    assert repr(observer.summary())


def upright(log, **parameters):
    """Fit without any warning of numpy's; warnings of ours may come."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        observer = TrackingObserver(**parameters).fit(log)
        finite(observer, log)
    return observer


def rebuilt(log, features=None, chosen=None):
    return BanditLog(
        log.features if features is None else features, log.offsets, log.chosen if chosen is None else chosen
    )


@pytest.mark.parametrize(
    "parameters",
    [{"exploration": UCB(0.25)}, {"exploration": UCB(4.0)}, {"ridge": 0.1}, {"ridge": 10.0}],
    ids=["alpha a quarter", "alpha fourfold", "ridge a tenth", "ridge tenfold"],
)
def test_wrong_constants_cost_little(simulation, parameters):
    own = direction_error(simulation.learner_theta, simulation.theta_star)
    observer = upright(simulation.log, **parameters)
    assert direction_error(observer.theta_, simulation.theta_star) < 2 * own


def test_batches_cost_little():
    simulation = simulate(Environment(5, 8, seed=7), LinUCB(batch=50), 800, seed=7)
    own = direction_error(simulation.learner_theta, simulation.theta_star)
    assert direction_error(upright(simulation.log).theta_, simulation.theta_star) < 4 * own


def test_corrupted_picks_cost_little(simulation):
    rng = np.random.default_rng(0)
    chosen = simulation.log.chosen.copy()
    hit = rng.random(len(chosen)) < 0.05
    chosen[hit] = rng.integers(0, 8, size=hit.sum())
    own = direction_error(simulation.learner_theta, simulation.theta_star)
    observer = upright(rebuilt(simulation.log, chosen=chosen))
    assert direction_error(observer.theta_, simulation.theta_star) < 3 * own


@pytest.mark.parametrize("arms", [2, (1, 2), (1, 12), (2, 40)], ids=str)
def test_any_number_of_arms(arms):
    simulation = simulate(Environment(3, arms, seed=2), LinUCB(), 800, seed=2)
    assert direction_error(upright(simulation.log).theta_, simulation.theta_star) < 0.15


def test_rounds_without_a_choice_alone():
    log = simulate(Environment(3, 1, seed=2), LinUCB(), 50, seed=2).log
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        observer = TrackingObserver().fit(log)
    expected = {OneArmRoundsWarning, TooFewRoundsWarning, NoPreferenceWarning, CollinearFeaturesWarning}
    assert {one.category for one in told} == expected
    assert [str(one.message) for one in told] == list(observer.warnings_)
    assert not observer.theta_.any()


@pytest.mark.parametrize("scale", [1000.0, 0.001])
def test_the_unit_of_the_features_cancels(simulation, scale):
    """With features so large or small the learner's ridge is another one: that of the unit."""
    plain = upright(simulation.log).theta_
    features = simulation.log.features.astype(np.float64) * scale
    scaled = upright(rebuilt(simulation.log, features=features), ridge=scale**2).theta_
    np.testing.assert_allclose(scaled * scale, plain, rtol=1e-4, atol=1e-4 * np.abs(plain).max())
    own = upright(rebuilt(simulation.log, features=features)).theta_
    assert direction_error(own, simulation.theta_star) < 0.2


def test_a_feature_that_never_varies(simulation):
    features = np.column_stack([simulation.log.features, np.ones(len(simulation.log.features))])
    observer = upright(rebuilt(simulation.log, features=features))
    assert direction_error(observer.theta_[:5], simulation.theta_star) < 0.1


def test_features_that_cannot_be_told_apart(simulation):
    features = simulation.log.features.astype(np.float64)
    features = np.column_stack([features, features[:, 0]])
    observer = upright(rebuilt(simulation.log, features=features))
    together = np.append(observer.theta_[0] + observer.theta_[5], observer.theta_[1:5])
    assert direction_error(together, simulation.theta_star) < 0.1


@pytest.mark.parametrize("n_rounds", [1, 2, 5, 30])
def test_few_rounds(simulation, n_rounds):
    for exploration in ("auto", UCB(1.0)):
        observer = upright(simulation.log[:n_rounds], exploration=exploration)
        few = [text for text in observer.warnings_ if "the intervals are wide" in text]
        assert len(few) == (n_rounds < 10)


@pytest.mark.parametrize("kind", [UCB(1.0), TS(5.0), Lapse(0.0), Lapse(1.0), Softmax(0.5)], ids=repr)
def test_picks_that_contradict_the_family(simulation, kind):
    chosen = np.random.default_rng(1).integers(0, 8, size=800)
    upright(rebuilt(simulation.log, chosen=chosen), exploration=kind)


def test_bad_parameters(simulation):
    for parameters, words in (
        ({"exploration": "ucb"}, "exploration is 'ucb': use 'auto'"),
        ({"exploration": None}, "exploration is None"),
        ({"ridge": 0}, "ridge is 0"),
        ({"ridge": math.nan}, "ridge is nan"),
        ({"checkpoints": [0]}, "a checkpoint is 0"),
        ({"checkpoints": [1.5]}, "a checkpoint is 1.5"),
    ):
        with pytest.raises(InputError, match=words):
            TrackingObserver(**parameters).fit(simulation.log)
    for kind, value in ((UCB, -1.0), (TS, 0.0), (Lapse, 1.1), (Softmax, 0.0), (Softmax, "hot")):
        with pytest.raises(InputError, match=f"is {value!r}"):
            kind(value)
    with pytest.raises(InputError, match="level is 95"):
        TrackingObserver(exploration=UCB(1.0)).fit(simulation.log).summary(95)


def test_short_logs_are_no_misfits():
    for seed in range(4):
        for learner, kind in ((LinUCB(), UCB(1.0)), (EpsilonGreedy(0.05), Lapse(0.05))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OnlookerWarning)
                log = simulate(Environment(10, 20, seed=seed), learner, 100, seed=seed).log
                assert TrackingObserver(exploration=kind).fit(log).fits_


def test_short_logs_name_no_learner():
    log = simulate(Environment(5, 20, seed=0), LinTS(), 900, seed=0).log
    observer = TrackingObserver().fit(log)
    assert observer.exploration_ is None
    assert observer.summary().words[0] == "Too few rounds to name a learner: that takes 1000 or more."
    assert not observer.warnings_


def test_what_picks_cannot_tell_has_no_interval():
    """A feature that is the same for all arms of a round, and two that are the same everywhere."""
    log = simulate(Environment(3, 6, seed=4), LinUCB(), 800, seed=4).log
    shared = np.repeat(np.random.default_rng(0).normal(size=800), log.n_arms)
    features = np.column_stack([log.features, shared, log.features[:, 2]])
    with pytest.warns(CollinearFeaturesWarning) as told:
        observer = TrackingObserver().fit(BanditLog(features, log.offsets, log.chosen))
    assert len(told) == 2
    assert observer.theta_[3] == 0
    blank = [np.isnan(c.standard_error) for c in observer.summary().coefficients]
    assert blank == [False, False, True, True, True]


def test_what_all_arms_share_sets_no_scale():
    log = simulate(Environment(5, 20, seed=1), LinTS(), 2000, seed=1).log
    plain = TrackingObserver().fit(log)
    for shared in (100.0, 1e4):
        features = np.column_stack([np.full(len(log.features), shared), log.features])
        with pytest.warns(CollinearFeaturesWarning):
            observer = TrackingObserver().fit(BanditLog(features, log.offsets, log.chosen))
        assert observer.theta_[0] == 0
        assert direction_error(observer.theta_[1:], plain.theta_) < 0.01


def test_a_preference_that_comes_late_is_not_missed():
    log = simulate(Environment(5, 20, seed=3), ExploreThenCommit(1200), 2800, seed=1).log
    with pytest.warns(NoFamilyFitsWarning):
        whole = TrackingObserver().fit(log)
    assert whole.theta_.any()
    parts = TrackingObserver()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        for start in range(0, 2800, 1100):
            parts.partial_fit(log[start : start + 1100])
    np.testing.assert_array_equal(parts.theta_, whole.theta_)


@pytest.mark.parametrize("first", [True, False])
def test_arms_that_are_the_same_tell_nothing_apart(first):
    log = simulate(Environment(5, 10, seed=3), LinUCB(), 1500, seed=3).log
    twice = log.features.reshape(1500, 10, 5).repeat(2, axis=1)
    among = np.zeros(1500, dtype=int) if first else np.random.default_rng(0).integers(0, 2, 1500)
    observer = TrackingObserver(exploration=UCB(1.0)).fit(BanditLog.from_dense(twice, 2 * log.chosen + among))
    once = TrackingObserver(exploration=UCB(1.0)).fit(log)
    np.testing.assert_allclose(observer.theta_, once.theta_, rtol=1e-6)
    np.testing.assert_allclose(observer.covariance_, once.covariance_, rtol=1e-6)
    assert observer.fits_
    shares = observer.predict_proba(BanditLog.from_dense(twice, 2 * log.chosen))
    np.testing.assert_allclose(shares[::2], shares[1::2])


@pytest.mark.parametrize("scale", [1e100, 1e160, 1e8, 1e-150])
def test_scales_beyond_sense_are_refused(scale):
    log = simulate(Environment(3, 6, seed=4), LinUCB(), 300, seed=4).log
    with pytest.raises(InputError, match="rescale"):
        TrackingObserver().fit(BanditLog(log.features.astype(float) * scale, log.offsets, log.chosen))


def test_constants_and_logs_beyond_sense_are_refused():
    log = simulate(Environment(3, 6, seed=4), LinUCB(), 300, seed=4).log
    for ridge in (1e-300, 1e300):
        with pytest.raises(InputError, match="ridge"):
            TrackingObserver(ridge=ridge).fit(log)
    with pytest.raises(InputError, match="nu is"):
        TS(1e300)
    with pytest.raises(InputError, match="no rounds"):
        TrackingObserver().fit(log[:0])
    assert TrackingObserver().fit(log).predict_proba(log[:0]).shape == (0,)


def test_one_feature_has_a_sign():
    known = {"exploration": UCB(1.0)}
    observer = TrackingObserver(**known).fit(simulate(Environment(1, 5, seed=1), LinUCB(), 500, seed=1).log)
    assert observer.settled_round_ is not None
    log = simulate(Environment(3, 5, seed=1), LinUCB(), 500, seed=1).log
    short = TrackingObserver(checkpoints=[], **known).fit(log)
    assert "no earlier checkpoint" in short.summary().words[1]


SIZES = np.array([1.0, 5000.0, 1.0, 0.01, 300.0])


@pytest.fixture(scope="module")
def uneven():
    """A log whose learner saw features of one size, and which was written down in units of all kinds."""
    played = simulate(Environment(5, 10, seed=3, dtype="float64"), LinTS(), 2500, seed=3)
    log = played.log
    names = [f"x{j}" for j in range(5)]
    return played, BanditLog(log.features * SIZES, log.offsets, log.chosen, feature_names=names)


@pytest.fixture(scope="module")
def fitted_uneven(uneven):
    return TrackingObserver().fit(uneven[1])


def test_features_of_different_size_are_counted_in_their_own_units(uneven, fitted_uneven):
    (played, log), observer = uneven, fitted_uneven
    plain = TrackingObserver().fit(played.log)
    assert plain.units_ is None
    assert observer.exploration_.name == plain.exploration_.name == "TS"
    best = direction_error(plain.theta_, played.theta_star)
    assert direction_error(observer.theta_ * SIZES, played.theta_star) < best + 0.01
    assert direction_error(observer.path_.theta[-1] * SIZES, plain.path_.theta[-1]) < 0.02
    errors = np.sqrt(np.diag(observer.covariance_)) * SIZES / np.linalg.norm(observer.theta_ * SIZES)
    expected = np.sqrt(np.diag(plain.covariance_)) / np.linalg.norm(plain.theta_)
    np.testing.assert_allclose(errors, expected, rtol=0.35)
    assert observer.score(log) == pytest.approx(plain.score(played.log), abs=0.01)
    chances = observer.predict_proba(log)
    np.testing.assert_allclose(np.add.reduceat(chances, log.offsets[:-1]), 1.0)
    assert np.mean(np.abs(chances - plain.predict_proba(played.log))) < 0.02
    assert observer.units_.tolist() == [1.0, 4096.0, 1.0, 2.0**-7, 256.0]
    assert "('x3' in units of 0.0078125, 'x1' of 4096)" in str(observer.summary())
    assert "units of its own" not in str(plain.summary())


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.NoFamilyFitsWarning")  # 1,500 rounds prove none yet
def test_units_are_those_of_one_fit_however_the_rounds_come(uneven, fitted_uneven, tmp_path):
    (_, log), whole = uneven, fitted_uneven
    order = [3, 0, 4, 1, 2]
    turned = BanditLog(
        log.features[:, order], log.offsets, log.chosen, feature_names=[log.feature_names[j] for j in order]
    )
    parts = TrackingObserver().fit(log[:700]).partial_fit(turned[700:1500])
    parts.save(tmp_path / "state.json")
    parts = TrackingObserver.load(tmp_path / "state.json").partial_fit(log[1500:])
    np.testing.assert_array_equal(parts.units_, whole.units_)
    np.testing.assert_array_equal(parts.theta_, whole.theta_)
    np.testing.assert_array_equal(parts.path_.theta, whole.path_.theta)
    assert parts.settled_round_ == whole.settled_round_
    np.testing.assert_allclose(
        parts.predict_proba(turned).reshape(-1, 10), whole.predict_proba(log).reshape(-1, 10), rtol=1e-12
    )


def test_a_state_without_units(uneven, tmp_path):
    played, _ = uneven
    path = tmp_path / "state.json"
    TrackingObserver().fit(played.log[:2200]).save(path)
    document = json.loads(path.read_text())
    # As release 0.1 wrote them.
    document["schema"] = "onlooker.tracking/1"
    del document["monitor"]["follower"]["units"], document["digest"], document["seen"]
    path.write_text(json.dumps(document))
    with pytest.warns(RepeatedRoundsWarning, match="kept no record of its 2200 rounds"):
        later = TrackingObserver.load(path).partial_fit(played.log[2200:])
    np.testing.assert_array_equal(later.theta_, TrackingObserver().fit(played.log).theta_)
    document["monitor"]["follower"]["units"] = [1.0, 0.0, 1.0, 1.0, 1.0]
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="a unit is not above 0"):
        TrackingObserver.load(path)


@pytest.mark.parametrize("alone", [0, 1])
def test_every_second_round_without_a_choice(alone):
    log = simulate(Environment(5, 10, seed=3), LinUCB(), 1500, seed=3).log
    halves = [log[t : t + 1] for t in range(log.n_rounds)]
    rows = [half.chosen_rows if t % 2 == alone else np.arange(10) for t, half in enumerate(halves)]
    features = np.concatenate([half.features[row] for half, row in zip(halves, rows, strict=True)])
    chosen = [0 if len(row) == 1 else int(half.chosen[0]) for half, row in zip(halves, rows, strict=True)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    with pytest.warns(OneArmRoundsWarning):
        observer = TrackingObserver(exploration=UCB(1.0)).fit(BanditLog(features, offsets, chosen))
    assert observer.summary().foreseen > 0.8


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.NoFamilyFitsWarning")
@pytest.mark.parametrize("size", [4.3, 4321.07, 432107.3])
def test_what_all_arms_share_has_no_unit(size):
    log = simulate(Environment(4, 10, dtype="float64"), LinUCB(), 1500).log
    shared = np.repeat(size * (1 + 0.1 * np.random.default_rng(0).normal(size=1500)), 10)
    with pytest.warns(CollinearFeaturesWarning):
        observer = TrackingObserver().fit(BanditLog(np.column_stack([log.features, shared]), log.offsets, log.chosen))
    assert observer.units_ is None
    assert observer.theta_[4] == 0.0
