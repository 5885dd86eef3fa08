"""Burn-in rules: each says how many rounds to discard."""

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.imitation.burn_in import FixedStart, Fraction, HeldOut, PowerRule, as_burn_in, power_start
from onlooker.logs.log import BanditLog
from onlooker.observers.suffix_imitation import SuffixImitation


def learner_log(n_rounds=1500, switch=0, scale=10.0, seed=0):
    """Random picks up to `switch`, softmax picks after."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rounds, 6, 4))
    X /= np.maximum(1, np.linalg.norm(X, axis=2, keepdims=True))
    theta = rng.normal(size=4)
    chosen = (X @ (scale * theta / np.linalg.norm(theta)) + rng.gumbel(size=(n_rounds, 6))).argmax(axis=1)
    chosen[:switch] = rng.integers(0, 6, switch)
    return BanditLog.from_dense(X, chosen)


def test_power_rule_is_the_papers():
    assert power_start(10_000, 0.9) == 3981
    assert power_start(10_000, 0.5) == 100
    assert power_start(1000, 1 / 3) == 10
    assert power_start(10_000, 0.0) == 1
    assert power_start(10_000, 1.0) == 10_000


def test_parameters_stand_for_rules():
    log = learner_log(n_rounds=1000)
    for burn_in, start in [
        ("naive", 0),
        ("rule", 501),
        (7, 7),
        (np.int64(7), 7),
        (0.25, 250),
        (PowerRule(0.5), 31),
        (FixedStart(3), 3),
        (Fraction(0.5), 500),
    ]:
        assert as_burn_in(burn_in).start(log) == start
        assert SuffixImitation(burn_in=burn_in).fit(log).burn_in_ == start


def test_a_users_own_rule():
    class LastHundred:
        def start(self, log):
            return log.n_rounds - 100

    observer = SuffixImitation(burn_in=LastHundred()).fit(learner_log())
    assert observer.burn_in_ == 1400
    assert observer.n_rounds_ == 100


@pytest.mark.parametrize("burn_in", ["half", -1, 1.0, -0.1, float("nan"), True, None, PowerRule])
def test_nonsense_is_refused(burn_in):
    with pytest.raises(InputError, match="burn"):
        SuffixImitation(burn_in=burn_in).fit(learner_log(n_rounds=50))


def test_auto_finds_the_switch():
    """The random picks are discarded, and mostly little else."""
    starts = [HeldOut().start(learner_log(n_rounds=3000, switch=900, seed=seed)) for seed in range(10)]
    assert min(starts) >= 890
    assert np.median(starts) <= 1000


@pytest.mark.parametrize("scale", [2.0, 20.0])
def test_auto_keeps_a_stationary_log(scale):
    starts = [HeldOut().start(learner_log(scale=scale, seed=seed)) / 1500 for seed in range(20)]
    assert np.mean(np.array(starts) <= 0.2) >= 0.9
    assert np.mean(starts) <= 0.1


def test_auto_keeps_what_is_too_short_to_judge():
    assert HeldOut().start(learner_log(n_rounds=60)) == 0
    assert SuffixImitation(burn_in="auto").fit(learner_log(n_rounds=60)).burn_in_ == 0


def test_auto_uses_the_observers_penalty():
    assert as_burn_in("auto", l2=0.5) == HeldOut(l2=0.5)
