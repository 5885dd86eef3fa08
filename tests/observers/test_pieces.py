"""Observers that cut the log into pieces: k blocks, one change, blocks in order."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from onlooker import (
    BanditLog,
    BlockImitation,
    ChangePointImitation,
    Environment,
    LinTS,
    RankedBlocks,
    SuffixImitation,
    simulate,
)
from onlooker.base.errors import InputError


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(4, (2, 9), seed=3), LinTS(), n_rounds=1203, seed=3).log


def replaced(at, n=1000):
    """A log of a system that is replaced by another after `at` rounds."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 5, 3))
    before, after = X @ [1.0, 1.0, 0.0], X @ [1.0, -1.0, 0.0]
    utility = np.where(np.arange(n)[:, None] < at, before, after) + rng.gumbel(size=(n, 5))
    return BanditLog.from_dense(X, utility.argmax(axis=1))


def test_the_last_block_is_a_suffix(log):
    observer = BlockImitation(blocks=4).fit(log)
    suffix = SuffixImitation(burn_in=902).fit(log)
    assert observer.burn_in_ == suffix.burn_in_
    np.testing.assert_allclose(observer.theta_, suffix.theta_, rtol=1e-6)
    assert observer.path_.rounds.tolist() == [300, 601, 902, 1203]
    first = SuffixImitation(burn_in="naive").fit(log[:300])
    np.testing.assert_allclose(observer.path_.theta[0], first.theta_, rtol=1e-6)


def test_blocks_without_a_choice():
    log = BanditLog(np.zeros((5, 2)), offsets=[0, 1, 3, 5], chosen=[0, 0, 0])
    with pytest.raises(InputError, match="rounds 0 to 1 of 3 offer no choice: use fewer blocks"):
        BlockImitation(blocks=3).fit(log)
    for observer in (BlockImitation(blocks=1), RankedBlocks(blocks=2)):
        with pytest.raises(InputError, match="no round offers a choice"):
            observer.fit(log[:1])
    with pytest.raises(InputError, match="3 rounds cannot make 4 blocks"):
        BlockImitation(blocks=4).fit(log)
    with pytest.raises(InputError, match="blocks is 0"):
        BlockImitation(blocks=0).fit(log)


@pytest.mark.parametrize("at", [250, 800])
def test_a_change_is_found(at):
    observer = ChangePointImitation().fit(replaced(at))
    assert observer.burn_in_ == at
    np.testing.assert_allclose(observer.theta_, SuffixImitation(burn_in=at).fit(replaced(at)).theta_, rtol=1e-3)


def test_where_nothing_changes_all_is_kept():
    log = replaced(0)
    observer = ChangePointImitation().fit(log)
    assert observer.burn_in_ == 0
    np.testing.assert_allclose(observer.theta_, SuffixImitation(burn_in="naive").fit(log).theta_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_a_log_too_short_for_a_change_is_kept_whole():
    assert ChangePointImitation().fit(replaced(5, n=10)).burn_in_ == 0


def test_ranking_is_logistic_regression_on_pairs_of_blocks(log):
    edges = sorted({0, *np.ceil(1203 ** (np.arange(9) / 8)).astype(int).tolist()})
    means = []
    for start, stop in pairwise(edges):
        gains = [log.arms(t)[log.chosen[t]] - log.arms(t).mean(axis=0) for t in range(start, stop)]
        means.append(np.mean(gains, axis=0))
    pairs = [(i, j) for j in range(len(means)) for i in range(j)]
    rows = np.array([means[j] - means[i] for i, j in pairs])
    # Every pair in both orders, so that the regression has two classes: twice the rows, and half the penalty on each.
    both, labels = np.concatenate([rows, -rows]), np.repeat([1, 0], len(rows))
    reference = LogisticRegression(fit_intercept=False, C=1 / (0.01 * len(both)), tol=1e-10).fit(both, labels)
    theta = RankedBlocks(blocks=8, l2=0.01).fit(log).theta_
    np.testing.assert_allclose(theta, reference.coef_[0], rtol=1e-4)


def test_ranking_needs_two_blocks(log):
    with pytest.raises(InputError, match="1 rounds make no two blocks to rank"):
        RankedBlocks().fit(log[:1])
    with pytest.raises(InputError, match="blocks is 1"):
        RankedBlocks(blocks=1).fit(log)
