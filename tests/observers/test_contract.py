"""What every observer must do, checked on every observer that there is."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

import onlooker.observers
from onlooker.base.errors import FittedRoundsWarning, InputError, NotFittedError
from onlooker.evaluation.metrics import direction_error
from onlooker.observers import Observer
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import LinUCB
from onlooker.simulation.play import simulate

OBSERVERS = [
    thing
    for _, thing in inspect.getmembers(onlooker.observers, inspect.isclass)
    if issubclass(thing, Observer) and thing is not Observer
]

QUICK = {
    "BayesianICB": {"iterations": 10, "posterior_sweeps": 30},
    "NonparametricICB": {"sweeps": 150, "burn_in_sweeps": 100},
}
"""Settings of those that sample: short chains obey the contract too."""


def ready(kind):
    return kind(**QUICK.get(kind.__name__, {}))


@pytest.fixture(scope="module")
def simulation():
    return simulate(Environment(4, (2, 9), seed=3), LinUCB(), n_rounds=1500, seed=3)


@pytest.fixture(scope="module", params=OBSERVERS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def test_there_are_observers():
    assert OBSERVERS


def test_parameters_are_keyword_only_and_kept(kind):
    parameters = inspect.signature(kind).parameters.values()
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters)
    observer = kind()
    assert observer.get_params() == {p.name: p.default for p in parameters}
    for name in observer.get_params():
        marker = object()
        assert kind(**{name: marker}).get_params(deep=False)[name] is marker


def test_clone_and_set_params(kind):
    observer = kind()
    copy = clone(observer)
    assert copy is not observer
    assert copy.get_params() == observer.get_params()
    name = next(iter(observer.get_params()))
    assert observer.set_params(**{name: 7}) is observer
    assert observer.get_params()[name] == 7
    with pytest.raises(InputError, match="no parameter 'nonsense'"):
        observer.set_params(nonsense=1)


def test_repr_shows_what_was_changed(kind):
    assert repr(kind()) == f"{kind.__name__}()"


def test_fit_predict_score(kind, simulation):
    log = simulation.log
    observer = ready(kind)
    assert observer.fit(log) is observer
    # The order of blocks alone says little of a learner that has settled within a few of them.
    ranked = kind is onlooker.observers.RankedBlocks
    assert direction_error(observer.theta_, simulation.theta_star) < (1.4 if ranked else 0.3)
    np.testing.assert_array_equal(observer.theta_, observer.policy_.theta)
    picks = observer.predict(log)
    with pytest.warns(FittedRoundsWarning, match=r"use propensities\(log\)"):
        probabilities = observer.predict_proba(log)
    assert picks.shape == (log.n_rounds,)
    assert probabilities.shape == (len(log.features),)
    np.testing.assert_allclose(np.add.reduceat(probabilities, log.offsets[:-1]), 1.0)
    assert observer.score(log) == np.mean(picks == log.chosen)
    assert ranked or observer.score(log) > 0.5
    promised = {name for base in kind.__mro__ for name in inspect.get_annotations(base)}
    assert "covariance_" not in promised or observer.covariance_.shape == (4, 4)


def test_fitting_again_gives_the_same_answer_and_leaves_the_parameters_alone(kind, simulation):
    observer = ready(kind)
    before = observer.get_params()
    first = observer.fit(simulation.log).theta_
    np.testing.assert_array_equal(observer.fit(simulation.log).theta_, first)
    assert observer.get_params() == before


def test_double_precision_and_views_make_no_difference(kind, simulation):
    log = simulation.log
    double = type(log)(log.features.astype(np.float64), log.offsets, log.chosen)
    single = ready(kind).fit(log).theta_
    np.testing.assert_allclose(ready(kind).fit(double).theta_, single, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(ready(kind).fit(log[:]).theta_, single)


def test_before_fit(kind, simulation):
    for ask in (lambda o: o.theta_, lambda o: o.predict(simulation.log), lambda o: o.score(simulation.log)):
        with pytest.raises(NotFittedError, match=r"call fit\(log\) first"):
            ask(kind())


def test_what_is_not_a_log_is_refused(kind):
    with pytest.raises(InputError, match="ndarray is not a BanditLog"):
        kind().fit(np.zeros((3, 2, 1)))


@pytest.fixture(scope="module")
def fitted(kind, simulation):
    return ready(kind).fit(simulation.log[:400])


@pytest.mark.parametrize("ahead", [True, False])
def test_propensities_are_probabilities_of_every_round(fitted, simulation, ahead):
    for log in (simulation.log[:400], simulation.log[400:500]):
        found = fitted.propensities(log, ahead)
        assert found.shape == (len(log.features),)
        assert found.min() > 0
        np.testing.assert_allclose(np.add.reduceat(found, log.offsets[:-1]), 1.0)


def test_propensities_ahead_use_no_pick_of_the_round_or_later(fitted, simulation):
    log = simulation.log[:400]
    chosen = log.chosen.copy()
    chosen[300:] = 0
    other = type(log)(log.features, log.offsets, chosen)
    rows = slice(0, int(log.offsets[301]))
    np.testing.assert_array_equal(fitted.predicted_ahead(other)[rows], fitted.propensities(log)[rows])


def test_propensities_of_a_log_that_grew(fitted, simulation):
    log = simulation.log
    grown = fitted.propensities(log[:450])
    np.testing.assert_allclose(grown[: int(log.offsets[400])], fitted.propensities(log[:400]))


def test_some_rounds_out_of_the_middle_are_refused(fitted, simulation):
    with pytest.raises(InputError, match="begins with round 100 of those that were fitted"):
        fitted.propensities(simulation.log[100:200])


def test_predict_proba_warns_of_fitted_rounds_alone(fitted, simulation):
    log = simulation.log
    fitted.score(log[:400])
    fitted.predict_proba(log[400:])
    for part in (log[:400], log[:1500], log[37:300]):
        with pytest.warns(FittedRoundsWarning):
            fitted.predict_proba(part)


def test_propensities_before_fit(kind, simulation):
    with pytest.raises(NotFittedError, match=r"call fit\(log\) first"):
        kind().propensities(simulation.log)


@pytest.mark.parametrize("kind", [onlooker.observers.TrackingObserver, onlooker.observers.DynamicImitation])
def test_propensities_of_a_state_that_was_loaded(kind, simulation, tmp_path):
    log, observer = simulation.log, kind().fit(simulation.log[:400])
    observer.save(tmp_path / "state.json")
    loaded = kind.load(tmp_path / "state.json")
    for rounds in (log[:400], log[400:500], log[:500]):
        np.testing.assert_allclose(loaded.propensities(rounds), observer.propensities(rounds))
