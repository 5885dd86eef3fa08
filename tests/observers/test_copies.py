"""Every observer and every value survives pickle, deepcopy and joblib, and scikit-learn's own tools take observers."""

import copy
import inspect
import io
import pickle
import warnings
from dataclasses import fields, is_dataclass

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.utils.validation import check_is_fitted

import onlooker
import onlooker.base.errors
from onlooker import (
    BanditLog,
    Environment,
    HeldOut,
    LinearPolicy,
    LinUCB,
    PowerRule,
    SuffixImitation,
    TrackingObserver,
    burn_in_sweep,
    compare,
    diagnose,
    simulate,
)
from onlooker.base.errors import InputError, OnlookerWarning
from onlooker.observers import Observer

from .test_contract import OBSERVERS, ready

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning")


def through_joblib(value):
    file = io.BytesIO()
    joblib.dump(value, file)
    file.seek(0)
    return joblib.load(file)


WAYS = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": copy.deepcopy, "joblib": through_joblib}


@pytest.fixture(scope="module")
def simulation():
    return simulate(Environment(4, (2, 9), seed=3), LinUCB(), n_rounds=700, seed=3)


@pytest.fixture(scope="module", params=["numbers", "category"])
def log(request, simulation):
    """Rounds of a learner, with plain features and with one that is a category."""
    plain = simulation.log
    if request.param == "numbers":
        return plain
    features = plain.features.astype(np.float64)
    features[:, 3] = features[:, 3] > 0
    names = ("price", "rating", "age", "colour=red")
    return BanditLog(features, plain.offsets, plain.chosen, feature_names=names, categories={"colour": ("blue", "red")})


@pytest.fixture(scope="module", params=OBSERVERS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(kind, log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        return ready(kind).fit(log[:600])


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def copied(request):
    return request.param


def assert_equal(one, other):
    """The same types and numbers, all the way down."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    elif isinstance(one, BanditLog):
        for name in BanditLog.__slots__:
            assert_equal(getattr(one, name), getattr(other, name))
    elif is_dataclass(one):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_equal(mine, theirs)
    elif isinstance(one, np.random.Generator):
        assert one.bit_generator.state == other.bit_generator.state
    elif isinstance(one, float):
        np.testing.assert_equal(one, other)
    elif type(one).__eq__ is not object.__eq__:
        assert one == other
    else:
        assert repr(one) == repr(other)


def test_an_observer_that_was_not_fitted(kind, copied):
    observer = ready(kind)
    again = copied(observer)
    assert again.get_params() == observer.get_params()
    assert vars(again) == vars(observer)


def test_a_fitted_observer(fitted, log, copied):
    again = copied(fitted)
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.theta_, fitted.theta_)
    assert again.policy_ == fitted.policy_
    assert again.warnings_ == fitted.warnings_
    np.testing.assert_array_equal(again.predict(log), fitted.predict(log))
    np.testing.assert_array_equal(again.predict_proba(log), fitted.predict_proba(log))
    if hasattr(fitted, "summary"):
        assert str(again.summary()) == str(fitted.summary())
    public = {name: value for name, value in vars(fitted).items() if not name.startswith("_")}
    for name, value in public.items():
        assert_equal(getattr(again, name), value)


@pytest.mark.parametrize("growing", [one for one in OBSERVERS if hasattr(one, "partial_fit")])
def test_a_copy_goes_on_where_the_observer_was(growing, log, copied):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        fitted = ready(growing).fit(log[:600])
        one, other = copied(fitted), copied(fitted)
        before = fitted.theta_.copy()
        one.partial_fit(log[600:])
        other.partial_fit(log[600:650]).partial_fit(log[650:])
    assert not np.array_equal(one.theta_, before)
    np.testing.assert_allclose(one.theta_, other.theta_, rtol=1e-6)
    # The observer itself stays where it was.
    np.testing.assert_array_equal(fitted.theta_, before)


def test_scikit_learn_knows_whether_it_is_fitted(kind, fitted):
    check_is_fitted(fitted)
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(ready(kind))
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(clone(fitted))


def test_cross_validation_over_rounds(log):
    folds = TimeSeriesSplit(n_splits=3)
    scores = cross_val_score(SuffixImitation(burn_in="naive"), log, cv=folds)
    expected = [
        SuffixImitation(burn_in="naive").fit(log[train]).score(log[test]) for train, test in folds.split(log.chosen)
    ]
    np.testing.assert_array_equal(scores, expected)
    search = GridSearchCV(SuffixImitation(burn_in="naive"), {"l2": [1e-5, 1e-4]}, cv=folds).fit(log)
    assert search.best_params_["l2"] in {1e-5, 1e-4}
    assert search.predict(log).shape == (len(log),)


def values(log, simulation):
    """Everything that is handed to users, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        tracking = TrackingObserver().fit(log)
        imitation = SuffixImitation(burn_in="naive").fit(log)
        return {
            "log": log,
            "policy": imitation.policy_,
            "summary": imitation.summary(),
            "tracking summary": tracking.summary(),
            "path": tracking.path_,
            "diagnosis": diagnose(log),
            "sweep": burn_in_sweep(log, [0.5, 0.9]),
            "held-out curve": HeldOut().curve(log),
            "simulation": simulation,
            "comparison": compare(log, {"naive": SuffixImitation(burn_in="naive")}),
        }


def test_values(log, simulation, copied):
    for value in values(log, simulation).values():
        assert_equal(copied(value), value)


def test_copies_are_as_read_only_as_what_they_copy(log, copied):
    again = copied(log)
    assert not again.features.flags.writeable
    with pytest.raises(AttributeError, match="immutable"):
        again.chosen = None
    policy = copied(LinearPolicy([1.0, 2.0], ["a", "b=y"], {"b": ["x", "y"]}))
    assert not policy.theta.flags.writeable
    with pytest.raises(TypeError):
        policy.categories["b"] = ("x",)


def instances():
    """Every exported class that can be made of nothing or of one number: learners, families, rules."""
    for name in sorted(onlooker.__all__ if hasattr(onlooker, "__all__") else dir(onlooker)):
        thing = getattr(onlooker, name)
        if not inspect.isclass(thing) or issubclass(thing, (BaseException, Observer)):
            continue
        for arguments in ((), (0.3,)):
            try:
                yield thing(*arguments)
            except (TypeError, InputError):
                continue
            break


def test_small_values(copied):
    found = list(instances())
    assert {"UCB", "TS", "Lapse", "LinUCB", "LinTS", "PowerRule", "Fraction"} <= {type(one).__name__ for one in found}
    for value in [*found, PowerRule(0.7), Environment(3, 4, seed=1)]:
        assert_equal(copied(value), value)


def test_errors_and_warnings(copied):
    kinds = [
        kind for _, kind in inspect.getmembers(onlooker.base.errors, inspect.isclass) if issubclass(kind, Exception)
    ]
    assert kinds
    for kind in kinds:
        assert_equal(copied(kind("round 3: is odd")).args, ("round 3: is odd",))
