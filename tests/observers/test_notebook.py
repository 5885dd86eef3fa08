"""Every observer in a notebook: in print, as a table, in HTML and in a picture."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import onlooker
from onlooker import (
    Additive,
    BanditLog,
    Environment,
    LinUCB,
    Neural,
    NotFittedError,
    Products,
    SuffixImitation,
    diagnose,
    fit_groups,
    propensities,
    simulate,
)
from onlooker.observers import __all__ as names
from onlooker.observers.base import Observer
from onlooker.report.notebook import charts_of

OBSERVERS = [
    getattr(onlooker, name)
    for name in names
    if isinstance(getattr(onlooker, name, None), type) and issubclass(getattr(onlooker, name), Observer)
]


@pytest.fixture(scope="module")
def log():
    log = simulate(Environment(3, 5), LinUCB(), n_rounds=400).log
    return BanditLog(log.features, log.offsets, log.chosen, feature_names=["price", "<b>speed</b>", "size"])


@pytest.fixture(scope="module")
def fitted(log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {kind.__name__: kind().fit(log) for kind in OBSERVERS}


def test_all_observers_are_looked_at():
    assert len(OBSERVERS) >= 9


@pytest.mark.parametrize("kind", OBSERVERS, ids=lambda kind: kind.__name__)
def test_in_print_and_html(kind, fitted):
    fresh, found = kind(), fitted[kind.__name__]
    assert str(fresh) == f"{kind.__name__}(), not fitted yet"
    assert repr(found) == repr(fresh), "what it was made with"
    assert str(found).startswith(f"{kind.__name__}(), fitted: 3 weights")
    assert "price" in str(found)
    assert "not fitted" in fresh._repr_html_()
    html = found._repr_html_()
    assert "<table>" in html
    assert "&lt;b&gt;speed" in html
    assert "<b>speed" not in html


@pytest.mark.parametrize("kind", OBSERVERS, ids=lambda kind: kind.__name__)
def test_summary_as_a_table(kind, fitted):
    found = fitted[kind.__name__]
    frame = found.summary().to_frame()
    assert list(frame.columns) == ["feature", "estimate", "standard_error", "low", "high", "z"]
    assert frame["feature"].tolist() == ["price", "<b>speed</b>", "size"]
    estimates = np.array(frame["estimate"])
    if kind.__name__ != "TrackingObserver":  # its summary has the direction
        assert np.array_equal(estimates, found.theta_)
    assert "price" in repr(found.summary())
    with pytest.raises(NotFittedError):
        kind().summary()


# The picks of LinUCB are certain, so that the weights behind them may be of any length.
@pytest.mark.filterwarnings("ignore:the weights over time did not settle")
@pytest.mark.parametrize("kind", OBSERVERS, ids=lambda kind: kind.__name__)
def test_plot(kind, fitted):
    figure = fitted[kind.__name__].plot()
    assert isinstance(figure, Figure)
    assert figure.get_axes() or any(part.get_axes() for part in figure.subfigs)
    with pytest.raises(NotFittedError):
        kind().plot()


@pytest.mark.filterwarnings("ignore:the weights over time did not settle")
def test_weights_that_walk_have_errors_and_a_path(fitted):
    found = fitted["DynamicImitation"]
    frame = found.summary().to_frame()
    assert np.array_equal(np.array(frame["standard_error"]), np.sqrt(np.diag(found.covariance_)))
    assert [chart.title for chart in charts_of(found)] == ["Weights over time"]


def test_other_results(log, fitted):
    found = diagnose(log)
    assert isinstance(found.plot(), Figure)
    assert found.verdict in found._repr_html_()
    groups = fit_groups({"a<": log[:200], "b": log[200:], "short": log[:3]}, SuffixImitation(burn_in=10))
    assert isinstance(groups.plot(), Figure)
    assert "a&lt;" in groups._repr_html_()
    assert len(groups.to_frame()) == 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = propensities(log)
    assert isinstance(found.plot(), Figure)
    assert len(found.to_frame()) == len(log.features)
    assert isinstance(fitted["SuffixImitation"].summary().plot(), Figure)
    assert "<table>" in fitted["SuffixImitation"].summary()._repr_html_()


def test_weights_by_arm():
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(200, 2))
    picks = (contexts @ rng.normal(size=(2, 3)) + rng.gumbel(size=(200, 3))).argmax(axis=1)
    observer = SuffixImitation(burn_in=0).fit(BanditLog.from_contexts(contexts, picks))
    (chart,) = charts_of(observer)
    assert chart.title == "Weights by arm"
    assert len(observer.summary().to_frame()) == 6


def test_tables_without_pandas(log, fitted, monkeypatch):
    import sys

    import pyarrow as pa

    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(fitted["SuffixImitation"].summary().to_frame(), pa.Table)
    table = log[:5].to_frame()
    assert isinstance(table, pa.Table)
    assert np.array_equal(BanditLog.from_frame(table).chosen, log[:5].chosen)


@pytest.mark.parametrize("score", [Additive(), Products(), Neural()], ids=lambda score: type(score).__name__)
@pytest.mark.filterwarnings("ignore")  # what a short log of a nearly deterministic learner leaves open
def test_scores_that_are_not_linear(score, log):
    observer = SuffixImitation(score=score, burn_in="naive").fit(log[:300])
    assert repr(observer.policy_) in str(observer)
    assert "<p>" in observer._repr_html_()
    assert observer.summary().to_frame() is not None
