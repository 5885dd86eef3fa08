"""What the library says where something else was meant."""

import numpy as np
import pytest

import onlooker
from onlooker import BanditLog, InputError, LinearPolicy, bounds, report_page, scan_log, write_log, write_report
from onlooker.observers import Observer
from onlooker.observers.methods import METHODS


@pytest.fixture(scope="module")
def log():
    X = np.random.default_rng(0).normal(size=(60, 4, 2))
    return BanditLog.from_dense(X, chosen=X[:, :, 0].argmax(axis=1))


@pytest.fixture(scope="module")
def scan(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("scan") / "log.parquet"
    write_log(log, path)
    return scan_log(path)


IN_MEMORY = ("blocks", "change-point", "ranked", "ibcb", "bayesian", "nonparametric")


@pytest.mark.parametrize("method", [one for one in METHODS if one.name in IN_MEMORY], ids=lambda one: one.name)
def test_an_observer_says_that_it_needs_the_log_in_memory(scan, method):
    observer = method.make()
    with pytest.raises(InputError, match=f"{type(observer).__name__} needs the log in memory.* read it"):
        observer.fit(scan)


@pytest.mark.parametrize("name", ["predict", "predict_proba", "score"])
@pytest.mark.parametrize("observer", [onlooker.SuffixImitation(), onlooker.TrackingObserver()], ids=repr)
@pytest.mark.filterwarnings("ignore::onlooker.OnlookerWarning")
def test_predictions_say_so_too(log, scan, observer, name):
    with pytest.raises(InputError, match=f"{name} needs the log in memory, and a LogScan is not"):
        getattr(observer.fit(log), name)(scan)


def test_reports_and_policies_say_so_too(scan):
    with pytest.raises(InputError, match="a report needs the log in memory, and a LogScan is not: read it"):
        report_page(scan)
    with pytest.raises(InputError, match="a policy needs the log in memory"):
        LinearPolicy([1.0, 0.0]).choose(scan)


@pytest.mark.parametrize("what", ["log", "scan"])
def test_a_report_is_written_from_a_page(request, tmp_path, what):
    with pytest.raises(InputError, match="is not a page: pass what report_page"):
        write_report(request.getfixturevalue(what), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_mistakes_are_counted_in_simulations(log):
    with pytest.raises(InputError, match="a BanditLog does not know the best arms: pass a Simulation"):
        bounds.eta_from_simulation(log)


@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.name)
def test_every_observer_has_warnings(method):
    assert method.make().warnings_ == ()


@pytest.mark.parametrize("name", ["naive", "tracking", "ibcb", "blocks", "change-point", "ranked"])
@pytest.mark.filterwarnings("ignore::onlooker.OnlookerWarning")
def test_and_keeps_them_as_texts(log, name):
    observer = next(one for one in METHODS if one.name == name).make().fit(log)
    assert isinstance(observer.warnings_, tuple)
    assert all(isinstance(text, str) for text in observer.warnings_)


def test_one_of_ones_own_has_them_without_doing_anything(log):
    class First(Observer):
        def fit(self, log):
            self.policy_ = LinearPolicy(np.eye(log.n_features)[0])
            return self

    assert First().fit(log).warnings_ == ()


def test_one_is_singular(log):
    assert repr(log[:1]) == "BanditLog(1 round, 4 arms, 2 features, float64)"
    alone = BanditLog(np.ones((2, 1)), [0, 1, 2], [0, 0])
    assert repr(alone) == "BanditLog(2 rounds, 1 arm, 1 feature, float64)"
    with pytest.raises(InputError, match="offers 1 arm "):
        BanditLog(np.ones((1, 1)), [0, 1], [3])
