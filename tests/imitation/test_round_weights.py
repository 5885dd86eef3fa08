"""A weight of two is two rounds: every answer is that of the log with its rounds repeated in place."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

from onlooker.base.errors import InputError, OnlookerWarning
from onlooker.imitation.burn_in import HeldOut, PowerRule
from onlooker.imitation.objective import Windows
from onlooker.imitation.softmax import after, split
from onlooker.logs.log import BanditLog
from onlooker.observers.suffix_imitation import SuffixImitation

pytestmark = pytest.mark.filterwarnings("ignore:.*a single arm was offered:onlooker.base.errors.OneArmRoundsWarning")


def ragged_log(seed, n_rounds, *, strength=1.0, random_until=0):
    """Rounds of one to five arms, picked by softmax after so many that are picked at random."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    sizes = rng.integers(1, 6, n_rounds)
    features = rng.normal(size=(sizes.sum(), d))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = features @ rng.normal(size=d) * strength + rng.gumbel(size=len(features))
    chosen = [int(scores[a:b].argmax()) for a, b in pairwise(offsets)]
    chosen = np.where(np.arange(n_rounds) < random_until, rng.integers(0, sizes), chosen)
    return BanditLog(features, offsets, chosen), rng


def both(log, weights, **parameters):
    """The observer of the weighted log and that of the repeated one, with what each warned of."""
    found = []
    for rounds, weight in ((log, weights), (log[np.repeat(np.arange(len(log)), weights)], None)):
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always", OnlookerWarning)
            found.append(SuffixImitation(**parameters).fit(rounds, sample_weight=weight))
    return found


def assert_same(weighted, repeated):
    np.testing.assert_allclose(weighted.theta_, repeated.theta_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(weighted.covariance_, repeated.covariance_, rtol=1e-5, atol=1e-9)
    assert weighted.n_rounds_ == repeated.n_rounds_
    assert weighted.agreement_ == pytest.approx(repeated.agreement_, abs=1e-12)
    assert weighted.loss_ == pytest.approx(repeated.loss_, rel=1e-8)
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-8)
    assert weighted.null_log_likelihood_ == pytest.approx(repeated.null_log_likelihood_, rel=1e-12)
    assert weighted.shrinkage_ == pytest.approx(repeated.shrinkage_, rel=1e-4)
    assert weighted.rank_ == repeated.rank_
    assert weighted.warnings_ == repeated.warnings_


@pytest.mark.parametrize("covariance", [{"covariance": "model"}, {}, {"lags": 0}, {"lags": 7}, {"lags": 10_000}])
@pytest.mark.parametrize("seed", range(3))
def test_every_covariance(seed, covariance):
    log, rng = ragged_log(seed, 150)
    weights = rng.integers(0, 6, 150)
    weights[rng.integers(0, 150, 3)] = 60
    assert_same(*both(log, weights, burn_in="naive", **covariance))


@pytest.mark.parametrize("burn_in", ["naive", "rule", "auto", 0.3, PowerRule(0.7)])
@pytest.mark.parametrize("l2", [0.0, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_every_burn_in_that_counts_rounds(seed, l2, burn_in):
    log, rng = ragged_log(10 + seed, 400, strength=3.0, random_until=150)
    weights = rng.integers(0, 5, 400)
    weights[[3, 60, 250]] = [40, 25, 30]
    weighted, repeated = both(log, weights, burn_in=burn_in, l2=l2)
    assert_same(weighted, repeated)
    # The place in the repeated log lies in the first round that is left.
    ends = np.cumsum(weights)
    assert ends[weighted.burn_in_] > repeated.burn_in_ or not repeated.burn_in_
    assert not weighted.burn_in_ or ends[weighted.burn_in_ - 1] <= repeated.burn_in_


def test_two_everywhere_is_the_log_twice_over():
    log, _ = ragged_log(0, 300)
    for parameters in ({}, {"covariance": "model"}, {"burn_in": "auto"}):
        assert_same(*both(log, np.full(300, 2), **parameters))


def test_one_everywhere_changes_nothing_at_all():
    log, _ = ragged_log(1, 300)
    for burn_in in ("naive", "rule", "auto", 40, 0.5):
        plain = SuffixImitation(burn_in=burn_in).fit(log)
        weighted = SuffixImitation(burn_in=burn_in).fit(log, sample_weight=np.ones(300))
        np.testing.assert_array_equal(weighted.theta_, plain.theta_)
        np.testing.assert_array_equal(weighted.covariance_, plain.covariance_)
        assert weighted.burn_in_ == plain.burn_in_


def test_a_number_of_rounds_is_a_place_in_the_log():
    log, rng = ragged_log(2, 300)
    weights = rng.integers(0, 4, 300)
    weighted = SuffixImitation(burn_in=100).fit(log, sample_weight=weights)
    repeated = SuffixImitation(burn_in="naive").fit(log[100:][np.repeat(np.arange(200), weights[100:])])
    assert_same(weighted, repeated)
    assert weighted.burn_in_ == 100


def test_warnings_count_rounds_by_their_weights():
    """Six rounds for ten features; eleven when each counts twice."""
    rng = np.random.default_rng(0)
    log = BanditLog.from_dense(rng.normal(size=(6, 3, 10)), rng.integers(0, 3, 6))
    for weights in (np.ones(6, dtype=int), np.full(6, 2)):
        weighted, repeated = both(log, weights, burn_in="naive", l2=0.1)
        assert weighted.warnings_ == repeated.warnings_
        assert any("rounds with a choice for 10 features" in one for one in weighted.warnings_) == (weights.sum() < 10)


def test_separable_picks_are_reported_alike():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3, 2))
    log = BanditLog.from_dense(X, (X @ [1.0, -2.0]).argmax(axis=1))
    weights = rng.integers(1, 4, 80)
    for l2 in (0.0, 1e-4):
        weighted, repeated = both(log, weights, burn_in="naive", l2=l2)
        assert weighted.warnings_ == repeated.warnings_ != ()


def test_large_weights_cost_no_more_than_small_ones():
    """A thousand million counted rounds."""
    log, rng = ragged_log(4, 400)
    weights = rng.integers(1, 4, 400)
    observers = [SuffixImitation(burn_in="auto", lags=0) for _ in range(2)]
    # Of a million rounds none has leverage, as of a thousand million.
    few, many = (one.fit(log, sample_weight=n * weights) for one, n in zip(observers, (10**3, 10**6), strict=True))
    np.testing.assert_allclose(many.theta_, few.theta_, rtol=1e-4)
    np.testing.assert_allclose(many.covariance_ * 10**3, few.covariance_, rtol=1e-3)


def test_parts_of_rounds_need_the_model():
    log, _ = ragged_log(5, 200)
    weights = np.full(200, 0.5)
    with pytest.raises(InputError, match=r"the weight of round 0 is 0\.5: .* use covariance='model'"):
        SuffixImitation(burn_in="naive").fit(log, sample_weight=weights)
    once = SuffixImitation(burn_in="naive", covariance="model").fit(log)
    half = SuffixImitation(burn_in="naive", covariance="model").fit(log, sample_weight=weights)
    np.testing.assert_allclose(half.covariance_, 2 * once.covariance_, rtol=1e-6)
    assert half.n_rounds_ == once.n_rounds_ // 2
    assert half.agreement_ == pytest.approx(once.agreement_)


class Half:
    """A rule of one's own."""

    def start(self, log):
        return len(log) // 2


@pytest.mark.parametrize(
    ("weights", "parameters", "message"),
    [
        (np.ones(50), {"burn_in": Half()}, "does not see sample_weight"),
        (np.zeros(50), {}, "weight 0"),
        (np.full(50, 1e300), {}, "too large"),
        (np.full(50, np.nan), {}, "round 0 is nan"),
        (np.ones(49), {}, "50 rounds"),
        ([["a"]] * 50, {}, "not numbers"),
    ],
)
def test_weights_that_are_refused(weights, parameters, message):
    log, _ = ragged_log(6, 50)
    with pytest.raises(InputError, match=message):
        SuffixImitation(**parameters).fit(log, sample_weight=weights)


@pytest.mark.parametrize("seed", range(20))
def test_windows_of_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    rows, repeats, width = rng.normal(size=(12, 3)), rng.integers(0, 9, 12), int(rng.integers(1, 9))
    whole = np.repeat(rows, repeats, axis=0)
    cut = int(rng.integers(0, 13))
    parts = Windows.of(rows[:cut], width, repeats[:cut]).joined(Windows.of(rows[cut:], width, repeats[cut:]))
    np.testing.assert_allclose(parts.products(), Windows.of(whole, width).products(), atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_cuts_leave_the_counted_rounds_as_they_are(seed):
    rng = np.random.default_rng(seed)
    log, weights = ragged_log(seed, 15)[0], rng.integers(0, 5, 15)
    weights[-1] = 2
    counted = np.repeat(np.arange(15), weights)
    burn_in = int(rng.integers(0, len(counted)))
    start, left = after(weights.astype(float), burn_in)
    np.testing.assert_array_equal(np.repeat(np.arange(start, 15), left.astype(int)), counted[burn_in:])
    cuts = rng.integers(0, len(counted) + 1, 6)
    pieces, counts, places = split(log, weights.astype(float), cuts)
    np.testing.assert_array_equal(np.repeat(pieces.n_arms, counts.astype(int)), log.n_arms[counted])
    np.testing.assert_array_equal([counts[:place].sum() for place in places], cuts)


def test_held_out_curves_agree():
    log, rng = ragged_log(7, 500, strength=3.0, random_until=200)
    weights = rng.integers(0, 7, 500)
    curve = HeldOut().curve(log, weights.astype(float))
    repeated = HeldOut().curve(log[np.repeat(np.arange(500), weights)])
    np.testing.assert_array_equal(curve.burn_ins, repeated.burn_ins)
    np.testing.assert_allclose(curve.losses, repeated.losses, rtol=1e-4)
    np.testing.assert_allclose(curve.errors, repeated.errors, rtol=1e-2, atol=1e-6)
    assert curve.start == repeated.start
