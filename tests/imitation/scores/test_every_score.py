"""Every score model with everything that takes scores: it works, or is refused in one line."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from onlooker import (
    Additive,
    BanditLog,
    Boosted,
    DynamicImitation,
    Environment,
    HeldOut,
    InputError,
    Linear,
    LinearPolicy,
    LinUCB,
    Mapped,
    Neural,
    PowerRule,
    Products,
    Softmax,
    SuffixImitation,
    TrackingObserver,
    burn_in_sweep,
    diagnose,
    fit_groups,
    load_policy,
    scan_log,
    simulate,
    write_log,
)
from onlooker.imitation.choice_model import pick_likelihood
from onlooker.report.log_page import report_page
from onlooker.report.page import render

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.OnlookerWarning")


@dataclass(frozen=True)
class Own:
    """A score model from outside: products under another name."""

    def prepared(self, log, *, l2, weights=None):
        return Products().prepared(log, l2=l2, weights=weights)


SCORES = {
    "linear": Linear(),
    "additive": Additive(4),
    "monotone": Additive(4, monotone={"b": 1}),
    "surface": Additive(4, interactions=[("a", "b")]),
    "products": Products(),
    "neural": Neural(4, max_iter=30),
    "boosted": Boosted(trees=10),
    "auto": "auto",
    "own": Own(),
}
FOLLOWED = {"linear", "additive", "surface", "products", "auto", "own"}
"""Those that are linear in a basis without bounds."""


@pytest.fixture(params=SCORES.values(), ids=list(SCORES))
def score(request):
    return request.param


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3, 2))
    X[..., 1] = X[..., 1].round(1)
    scores = 2 * np.abs(X[..., 0]) + X[..., 1]
    picks = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    return BanditLog.from_dense(X, picks, feature_names=["a", "b"])


def fitted(score, log, weights=None, **options):
    return SuffixImitation(**{"score": score, "burn_in": "naive", **options}).fit(log, weights)


def sums_to_one(found, log):
    assert (found > 0).all()
    np.testing.assert_allclose(np.add.reduceat(found, log.offsets[:-1]), 1.0)


@pytest.mark.parametrize(
    "burn_in", ["naive", "rule", "auto", 50, 0.2, PowerRule(0.8), HeldOut()], ids=lambda one: str(one)[:9]
)
def test_every_burn_in(score, log, burn_in):
    observer = fitted(score, log, burn_in=burn_in)
    rounds = log[observer.burn_in_ :]
    losses = pick_likelihood(observer.policy_.scores(rounds), rounds).losses
    assert observer.loss_ == pytest.approx(losses.mean(), abs=1e-9)


def test_a_sweep_is_the_fit_after_every_burn_in(score, log):
    sweep = burn_in_sweep(log, [0.0, 0.5, 1.0], score=score)
    assert sweep.burn_ins.tolist() == [1, 17, 300]
    for place in (0, 1):
        rounds = log[sweep.burn_ins[place] :]
        losses = pick_likelihood(sweep.policy(place).scores(rounds), rounds).losses
        assert sweep.losses[place] == pytest.approx(losses.mean(), abs=1e-9)
        if score != "auto":
            alone = fitted(score, log, burn_in=int(sweep.burn_ins[place]), covariance="model")
            assert sweep.losses[place] == pytest.approx(alone.loss_, rel=0.03)
    assert np.isnan(sweep.losses[2])
    with pytest.raises(InputError, match="leaves no round with a choice"):
        sweep.policy(2)


def test_a_diagnosis(score, log):
    assert diagnose(log, score=score).verdict in {"stable", "no preference", "not enough evidence", "other preferences"}


@pytest.mark.parametrize("ahead", [True, False])
def test_propensities(score, log, ahead):
    observer = fitted(score, log)
    found = observer.propensities(log, ahead)
    sums_to_one(found, log)
    assert np.log(found[log.chosen_rows]).mean() > -np.log(3)
    if ahead:
        np.testing.assert_allclose(observer.predicted_ahead(log), found)


def test_rounds_are_predicted_from_those_before(score, log):
    """Other picks in the second half leave what is said of the first half as it is."""
    names = log.feature_names
    turned = BanditLog(
        log.features, log.offsets, np.append(log.chosen[:150], 2 - log.chosen[150:]), feature_names=names
    )
    plain = BanditLog(log.features, log.offsets, log.chosen, feature_names=names)
    observers = [SuffixImitation(score=score)]
    if name_of(score) in FOLLOWED:
        observers += [DynamicImitation(score=score), TrackingObserver(exploration=Softmax(1.0), score=score)]
    for observer in observers:
        one, other = (observer.predicted_ahead(rounds)[:450] for rounds in (plain, turned))
        np.testing.assert_array_equal(one, other)


def name_of(score):
    return next(name for name, one in SCORES.items() if one == score)


def test_a_report(score, log):
    page = report_page(log, score=score)
    assert any(one.title == "Whether the score is linear" for one in page.sections) == (score != Linear())
    assert "<svg" in render(page)


def test_groups(score, log):
    groups = fit_groups({"early": log[:150], "late": log[150:]}, SuffixImitation(score=score, burn_in="naive"))
    alone = fitted(score, log[:150])
    np.testing.assert_allclose(groups["early"].policy.scores(log), alone.policy_.scores(log), atol=1e-6)
    assert "early" in groups._repr_html_()


def test_saved_and_copied(score, log, tmp_path):
    observer = fitted(score, log)
    observer.policy_.save(tmp_path / "policy.json")
    loaded = load_policy(tmp_path / "policy.json")
    np.testing.assert_array_equal(loaded.scores(log), observer.policy_.scores(log))
    for end in ("effect", "low", "high"):
        one, other = (getattr(policy.effect("b"), end) for policy in (loaded, observer.policy_))
        np.testing.assert_array_equal(one, other)
    for again in (pickle.loads(pickle.dumps(observer)), copy.deepcopy(observer)):
        np.testing.assert_array_equal(again.propensities(log), observer.propensities(log))
        assert str(again.summary()) == str(observer.summary())
    if score != "auto":
        assert pickle.loads(pickle.dumps(score)) == score
        assert hash(score) == hash(copy.deepcopy(score))


def test_what_is_shown(score, log):
    observer = fitted(score, log)
    assert isinstance(observer.policy_, LinearPolicy) or repr(observer.policy_) in str(observer)
    assert "300 rounds imitated" in str(observer.summary())
    assert observer.summary().to_frame() is not None
    assert observer._repr_html_().startswith("<p>")
    assert observer.plot().axes
    effect = observer.effect("b")
    np.testing.assert_array_equal(effect.plot().series[0].y, effect.effect)
    assert effect.has_band == (not isinstance(score, (Neural, Boosted)))
    assert effect.effect[-1] > effect.effect[0]
    assert np.isfinite(observer.policy_.effect("b").effect).all()


def test_tables_of_offers(score, log):
    policy = fitted(score, log).policy_
    rows = log.dense[:6]
    table = pa.table({"b": rows[:, 1], "round": [7, 7, 7, 9, 9, 9], "a": rows[:, 0]})
    np.testing.assert_allclose(policy.probabilities(table), policy.probabilities(log[:2]))
    np.testing.assert_array_equal(policy.choose(table), policy.choose(log[:2]))
    assert policy.pick(rows[:3]) == policy.choose(log[:1])[0]


def test_features_go_by_their_names(score, log):
    swapped = log.with_features(log.features[:, ::-1], ["b", "a"])
    observers = [fitted(score, log)]
    if name_of(score) in FOLLOWED:
        observers += [DynamicImitation(score=score).fit(log)]
        observers += [TrackingObserver(exploration=Softmax(1.0), score=score).fit(log)]
    for observer in observers:
        np.testing.assert_allclose(observer.predict_proba(swapped[5:]), observer.predict_proba(log[5:]), rtol=1e-9)
        other = log.with_features(log.features, ["a", "c"])
        with pytest.raises(InputError, match="different features"):
            observer.predict_proba(other)


def test_a_weight_counts_rounds(score, log):
    weights = np.ones(300)
    weights[::7], weights[1::7] = 2, 0
    weighted = fitted(score, log, weights).policy_.scores(log)
    repeated = fitted(score, log[np.repeat(np.arange(300), weights.astype(int))]).policy_.scores(log)
    if isinstance(score, Boosted):  # a leaf needs so many rows, however often they count
        without = weights.copy()
        without[::7] = 1
        some, kept = fitted(score, log, without), fitted(score, log[np.flatnonzero(without)])
        weighted, repeated = some.policy_.scores(log), kept.policy_.scores(log)
    np.testing.assert_allclose(weighted, repeated, atol=0.02)
    fitted(score, log, np.linspace(0.5, 1.5, 300), covariance="model")


def test_rounds_of_any_length(score):
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 4, size=200)
    offsets = np.append(0, np.cumsum(sizes))
    rows = rng.normal(size=(offsets[-1], 2))
    log = BanditLog(rows, offsets, rng.integers(0, sizes), feature_names=["a", "b"])
    sums_to_one(fitted(score, log).propensities(log), log)
    few = log[:4]
    assert np.isfinite(fitted(score, few).policy_.scores(log)).all()


def test_sparse_rows_are_written_out(score, log):
    rows = log.with_features(sparse.csr_array(log.features), ["a", "b"])
    np.testing.assert_allclose(
        fitted(score, rows).policy_.scores(log), fitted(score, log).policy_.scores(log), atol=1e-6
    )
    sums_to_one(fitted(score, rows).propensities(rows), rows)


def test_contexts_have_a_curve_for_every_arm():
    rng = np.random.default_rng(2)
    contexts = np.column_stack([np.ones(600), rng.normal(size=600)])
    worth = np.column_stack([3 * np.abs(contexts[:, 1]), np.full(600, 2.0)])
    picks = (worth + rng.gumbel(size=worth.shape)).argmax(axis=1)
    log = BanditLog.from_contexts(contexts, np.array(["tea", "milk"])[picks], feature_names=["one", "age"])
    for score in ("additive", "products", "neural", "boosted"):
        observer = SuffixImitation(score=score, burn_in="naive").fit(log)
        assert observer.score(log) > SuffixImitation(burn_in="naive").fit(log).score(log) + 0.05
        if score != "neural":  # its curve is a mean over rows that no arm has, those of milk with tea's age
            low, high = observer.effect("tea: age", [0.0, 2.0]).effect
            assert high > low
        sums_to_one(observer.propensities(log), log)
        assert diagnose(log, score=score).verdict is not None
        assert np.isfinite(burn_in_sweep(log, [0.5], score=score).losses).all()
    assert SuffixImitation(score="auto").fit(log).score_choice_.name == "linear"
    sums_to_one(DynamicImitation(score="products").fit(log).propensities(log), log)


def test_what_is_senseless_is_refused_in_one_line(score, log, tmp_path):
    write_log(log, tmp_path / "log.parquet")
    scan = scan_log(tmp_path / "log.parquet")
    if isinstance(score, Linear):
        np.testing.assert_allclose(fitted(score, scan).theta_, fitted(score, log).theta_, rtol=1e-6)
        return
    for work in (
        fitted,
        lambda one, rounds: burn_in_sweep(rounds, score=one),
        lambda one, rounds: diagnose(rounds, score=one),
    ):
        with pytest.raises(InputError, match="needs the log in memory") as error:
            work(score, scan)
        assert "\n" not in str(error.value)
    if name_of(score) not in FOLLOWED:
        for observer in (DynamicImitation, TrackingObserver):
            with pytest.raises(InputError, match=r"not linear in a basis|know no bounds"):
                observer(score=score).fit(log)
        with pytest.raises(InputError, match="use loss='softmax'"):
            fitted(score, log, loss="zero_one")


@pytest.mark.parametrize("name", sorted(FOLLOWED))
def test_weights_of_a_basis_are_followed(name, log):
    for observer in (
        DynamicImitation(score=SCORES[name]),
        TrackingObserver(exploration=Softmax(1.0), score=SCORES[name]),
    ):
        observer.fit(log[:250]).partial_fit(log[250:])
        assert len(observer.summary().to_frame()) == observer.covariance_.shape[0]
        assert observer._repr_html_().startswith("<p>")
        assert observer.plot().axes
        for ahead in (True, False):
            sums_to_one(observer.propensities(log, ahead), log)
        sums_to_one(observer.propensities(log[:50]), log[:50])
        again = pickle.loads(pickle.dumps(observer))
        np.testing.assert_array_equal(again.propensities(log), observer.propensities(log))


@pytest.mark.parametrize("name", [name for name in SCORES if name not in {"monotone", "surface"}])
def test_a_learner_on_a_map_of_features(name):
    """Scores see the features, the learner their products: those with products or more find them.

    All scores but those that name features of their own.
    """
    score = SCORES[name]
    played = simulate(Environment(3, 4, reward="square"), Mapped(LinUCB(0.1)), n_rounds=1200).log
    found = fitted(score, played, burn_in="rule").score(played[600:])
    together = not isinstance(score, (Linear, Additive))
    assert found > 0.6 if together else found < 0.6
